"""Whose turn it is to be judged when very many come: nobody keeps others out by coming again and again."""

from __future__ import annotations

import asyncio
from itertools import count

import pytest

from ioa.adapters.nats.arrivals import Arrival, ArrivalQueue
from ioa.networks import network_of

_number = count()


class Hall:
    """Arrivals with a clock that is set by hand, and those who were given up."""

    def __init__(self) -> None:
        self.time = 0.0
        self.given_up: list[str] = []
        self.arrivals = ArrivalQueue(lambda: self.time, lambda arrival: self.given_up.append(arrival.token))

    def come(self, token: str, address: str = "192.0.2.1") -> None:
        """Have somebody come."""
        self.arrivals.come(Arrival(f"U{next(_number)}", "N", token, address, self.time, "_R_.1"))

    async def judged(self, times: int, let_in: bool = False) -> list[str]:
        """Judge so many, one after another."""
        found = []
        for _ in range(times):
            arrival = await self.arrivals.next()
            self.arrivals.done(arrival, arrival.token.partition("-")[0] if let_in else "")
            found.append(arrival.token)
        return found


@pytest.fixture
def hall() -> Hall:
    """Nobody is there."""
    return Hall()


async def test_addresses_take_turns(hall: Hall) -> None:
    """However many come from one, somebody from another is the second at most; of one address who came last is first."""
    for number in range(500):
        hall.come(f"eve-{number}")
    hall.come("ann", "192.0.2.2")
    assert await hall.judged(3) == ["eve-499", "ann", "eve-498"]


async def test_who_was_let_in_before_goes_first(hall: Hall) -> None:
    """Even from the address from which all others come, and no more often than each second time, however often he comes."""
    hall.come("ann")
    assert await hall.judged(1, let_in=True) == ["ann"]
    for number in range(1_500):
        hall.come(f"eve-{number}")
    for _ in range(3):
        hall.come("ann")
    assert {*await hall.judged(2)} == {"ann", "eve-1499"}
    assert len(hall.given_up) == 500


async def test_a_guest_with_many_tokens_has_one_turn(hall: Hall) -> None:
    """His issuer gives him as many as he asks for: who comes again and again by each of them is one of those who take turns."""
    for token in (*(f"eve-{number}" for number in range(100)), "ann-0"):
        hall.come(token)
        await hall.judged(1, let_in=True)
    for number in range(100):
        hall.come(f"eve-{number}")
    hall.come("ann-0")
    assert "ann-0" in await hall.judged(2)


async def test_who_is_let_in_no_more_goes_no_longer_first(hall: Hall) -> None:
    """What is refused has no line of its own."""
    hall.come("ann")
    await hall.judged(1, let_in=True)
    hall.come("ann")
    await hall.judged(1)
    hall.come("ann")
    hall.come("eve")
    assert await hall.judged(2) == ["eve", "ann"]


async def test_who_has_waited_for_too_long_is_not_judged(hall: Hall) -> None:
    """nats-server has sent him away by then."""
    hall.come("ann")
    hall.time = 1.9
    hall.come("bob", "192.0.2.2")
    assert (await hall.judged(1), hall.given_up) == (["bob"], ["ann"])


async def test_one_address_is_not_judged_by_all_at_once(hall: Hall) -> None:
    """Who brings an unknown key waits for its issuer: others are judged meanwhile, and who is known has somebody of his own."""
    for number in range(50):
        hall.come(f"eve-{number}")
    taken = [await hall.arrivals.next() for _ in range(12)]
    waiting = asyncio.create_task(hall.arrivals.next())
    await asyncio.sleep(0)
    assert not waiting.done()
    hall.come("ann", "192.0.2.2")
    assert (await waiting).token == "ann"
    hall.arrivals.done(taken[0], None)
    assert (await hall.arrivals.next()).address == "192.0.2.1"


async def test_lines_are_bounded_for_all(hall: Hall) -> None:
    """Of those from one address and as many others as there is room for, it is the one's who make room."""
    for number in range(900):
        hall.come(f"eve-{number}")
    for number in range(4_000):
        hall.come(f"other-{number}", f"198.51.{number // 250}.{number % 250}")
        await asyncio.sleep(0)
    assert hall.given_up == [f"eve-{number}" for number in range(900)]


@pytest.mark.parametrize(
    ("host", "network"),
    [
        ("192.0.2.7", "192.0.2.7"),
        ("::ffff:192.0.2.7", "192.0.2.7"),
        ("2001:db8::1:2:3:4", "2001:db8::/64"),
        ("fe80::1%eth0", "fe80::/64"),
        ("", ""),
        ("a.b\n", ""),
    ],
)
def test_an_address_counts_for_what_one_holder_has(host: str, network: str) -> None:
    """Of IPv6 that is a network; what is no address is not shown."""
    assert network_of(host) == network
