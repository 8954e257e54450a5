"""Who makes and ends subscriptions without end is told from whoever else is active, at whatever times that is."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import pytest

from ioa.ports.connections import ConnectionId, SentTotals
from ioa.ports.inspection import CHURNED
from ioa.quotas import Rate
from ioa_registry.churn import LOOKS, WINDOW_SECONDS, ChurnJudge
from ioa_registry.floods import Excess, FloodJudge, FloodLimits

_LIMITS = FloodLimits(
    Rate(1_000, 20_000), bytes=Rate(10**8, 10**9), pause=60.0, connections=100, subscriptions=2_000, uncounted=Rate(10**5, 10**7)
)


@dataclass(frozen=True)
class Look:
    """One look at a client: when, how long before it was active, how many messages came since the last one, what it has then."""

    ago: float
    messages: int = 0
    subscriptions: int = 5
    connection: int = 1

    def seen(self, key: str) -> SentTotals:
        """What the judge is told."""
        at = ConnectionId("S1", self.connection)
        return SentTotals(at, key, self.messages, 0, subscriptions=self.subscriptions, active_ago=self.ago)


def _times(chance: random.Random, looks: int) -> Iterator[tuple[float, float]]:
    """Yield when one looks, and how long after the last time."""
    at = 0.0
    for _ in range(looks):
        pause = 1.0 + WINDOW_SECONDS * (chance.random() - 0.5)
        at += pause
        yield at, pause


def _named_after(looks: Sequence[Sequence[Look]]) -> int | None:
    judge = ChurnJudge()
    for number, look in enumerate(looks):
        if judge.looked("S1", [one.seen("eve") for one in look], number):
            return number
    return None


def _each(every: float, of: int) -> Callable[[random.Random], list[list[Look]]]:
    """One that does something at exact times, to which the registry's second is a multiple, of which so many are messages."""
    return lambda chance: [[Look(at % every, int(pause / every) * of)] for at, pause in _times(chance, 5_000)]


def _opening(chance: random.Random) -> list[list[Look]]:
    """One that opens twenty streams a second, without a message, until it has all that it may have, and closes them, and so on."""
    return [[Look(at % 0.05, subscriptions=abs(2_000 - int(20 * at) % 4_000))] for at, _ in _times(chance, 5_000)]


def _reconnecting(chance: random.Random) -> list[list[Look]]:
    """One whose connection ends and is made anew each time, with what it subscribed to."""
    return [[Look(chance.random() / 2, 3, 20, number)] for number, _ in enumerate(_times(chance, 5_000))]


def _bursts(chance: random.Random) -> list[list[Look]]:
    """One that is busy for a while, by as many messages as subscriptions, and does nothing for another."""
    return [[Look(0.004, 300) if at % 60 < 20 else Look(at % 60 - 20)] for at, _ in _times(chance, 5_000)]


@pytest.mark.parametrize(
    "honest",
    [_each(1.0, 0), _each(0.5, 0), _each(0.01, 1), _opening, _reconnecting, _bursts],
    ids=["each second", "two a second", "busy", "opens streams", "reconnects", "now and then"],
)
def test_who_is_active_for_a_reason_is_not_named(honest: Callable[[random.Random], list[list[Look]]]) -> None:
    """Neither by messages, nor by what it opens, nor by few subscriptions a second at times that could be the registry's own."""
    assert [_named_after(honest(random.Random(seed))) for seed in range(10)] == [None] * 10


def _one_connection(chance: random.Random) -> list[list[Look]]:
    return [[Look(0.12 * chance.random())] for _ in range(200)]


def _many_connections(chance: random.Random) -> list[list[Look]]:
    return [[Look(chance.random(), connection=number) for number in range(100)] for _ in range(200)]


def _coming_back(chance: random.Random) -> list[list[Look]]:
    return [[Look(0.004 * chance.random(), 1, 1, number)] if number % 5 else [] for number in range(200)]


def _many_at_a_time(chance: random.Random) -> list[list[Look]]:
    return [[Look(0.004 * chance.random(), subscriptions=chance.randrange(1_000))] for _ in range(200)]


@pytest.mark.parametrize("churn", [_one_connection, _many_connections, _coming_back, _many_at_a_time])
def test_who_does_nothing_but_subscribe_is_named(churn: Callable[[random.Random], list[list[Look]]]) -> None:
    """Within a minute or so, on one connection or on many in turn, on new ones, or by a thousand subscriptions at a time."""
    assert all((_named_after(churn(random.Random(seed))) or 200) < 80 for seed in range(20))


def _glances(judge: ChurnJudge, chance: random.Random, changes: bool, messages: int = 0) -> None:
    for number in range(6):
        held = 5 + (chance.random() < 0.5) * changes
        seen = SentTotals(ConnectionId("S1", 1), "eve", 70 + messages * number, 0, 900, subscriptions=held)
        judge.glanced("S1", [seen], 100.0 + 0.01 * number)


def test_what_others_send_to_who_churns_hides_nothing() -> None:
    """His subscriptions are others each few milliseconds, without a message. Who listens as much keeps his, and who asks sends."""
    chance, named = random.Random(1), Counter[str]()
    for name, changes, messages in (("churns", True, 0), ("listens", False, 0), ("asks", True, 1)):
        judge = ChurnJudge()
        for second in range(300):
            seen = Look(0.06 * chance.random(), messages)
            named[name] += len(judge.looked("S1", [replace(seen.seen("eve"), received=20)], second))
            _glances(judge, chance, changes, messages)
    assert (named["churns"] >= 3, named["listens"], named["asks"]) == (True, 0, 0)


def test_looks_that_come_at_once_are_one() -> None:
    """Behind an outage of half a minute, or where the server stalled, everybody has just come back."""
    judge = ChurnJudge()
    assert [judge.looked("S1", [Look(0.001, 0).seen("eve")], 60 + look / 1_000) for look in range(100)] == [frozenset()] * 100


def test_who_churns_is_put_off_as_who_floods_is() -> None:
    """The messages that it sent before do not excuse it, nor what others send."""
    judge, put_off = FloodJudge(_LIMITS), list[frozenset[str]]()
    for second in range(60):
        eve = SentTotals(ConnectionId("S1", 1), "eve", 10_000, 0, active_ago=0.002)
        bob = SentTotals(ConnectionId("S1", 2), "bob", 500 * second, 0, active_ago=0.002)
        put_off.append(judge.counted("S1", [eve, bob], float(second)))
    assert {key for keys in put_off for key in keys} == {"eve"}
    assert judge.put_off(60.0)["eve"] == Excess(CHURNED, LOOKS)
