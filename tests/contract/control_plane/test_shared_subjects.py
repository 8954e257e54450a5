"""Subjects that name nobody, on which no caller can be told from another."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.micro.request import Request

from ioa.adapters.nats import dispatching, service
from ioa.adapters.nats.dispatching import RequestDispatcher
from ioa.adapters.nats.endpoints import Bounds, ServiceEndpoint, answer
from ioa.adapters.nats.permissions import SHOWN_ASKER
from ioa.adapters.nats.requester import NatsRequester
from ioa.adapters.nats.service import open_service
from ioa.errors import NotFoundError, RateLimitedError, UnavailableError, row_of
from ioa.protocol.codec import encode
from ioa.protocol.model import Model
from ioa.quotas import Family, Rate
from tests.contract.control_plane.conftest import heard
from tests.rig.deadline import eventually

_SUBJECT, _AT_MOST, _SENT = "ioa.v1.test.shared", 40, 2_000


class Ask(Model):
    """A question without content."""


async def test_a_flood_on_a_shared_subject_is_dropped_by_the_server(nats_client: Client) -> None:
    """However many ask at once, a replica is handed so many requests in half a second, and goes on answering."""
    taken = 0

    async def count(request: Ask) -> Ask:
        nonlocal taken
        taken += 1
        return request

    async def asked() -> bool:
        try:
            return await NatsRequester(nats_client).request(_SUBJECT, Ask(), Ask) == Ask()
        except UnavailableError:
            return False

    endpoint = ServiceEndpoint("shared", _SUBJECT, answer(Ask, count), at_most=_AT_MOST)
    async with open_service(nats_client, "ioa-test", "Tests", "0.1.0", [endpoint]):
        await heard(nats_client)
        for _ in range(_SENT):
            await nats_client.publish(_SUBJECT, encode(Ask()), reply="nobody")
        assert await eventually(asked, bool)
        assert taken <= 5 * _AT_MOST < _SENT


def _work(seconds: float) -> None:
    until = time.thread_time() + seconds
    while time.thread_time() < until:
        pass


def _busy(seconds: float, done: list[str]) -> Callable[[str, bytes], Awaitable[bytes]]:
    """A handler that takes so much of the loop's time."""

    async def handle(_subject: str, data: bytes) -> bytes:
        _work(seconds)
        done.append(data.decode())
        return data

    return handle


async def _ask_for(client: Client, asker: str, times: int) -> None:
    shown = {SHOWN_ASKER: json.dumps({"acc": "IOA_USERS", "user": asker}), "Ioa-Patience": "60000"}
    for _ in range(times):
        await client.publish(_SUBJECT, asker.encode(), reply="nobody", headers=shown)


async def test_who_asks_seldom_does_not_wait_for_who_asks_much(nats_client: Client) -> None:
    """The server tells who asks, where the subject does not, and they take turns: of all that wait behind the first ones."""
    done, all_are_there = list[str](), asyncio.Event()

    async def note(_subject: str, data: bytes) -> bytes:
        await all_are_there.wait()
        done.append(data.decode())
        return data

    async def echo(request: Ask) -> Ask:
        return request

    shared = ServiceEndpoint("shared", _SUBJECT, note, at_most=250)
    fence = ServiceEndpoint("fence", "ioa.v1.test.fence", answer(Ask, echo))
    async with open_service(nats_client, "ioa-test", "Tests", "0.1.0", [shared, fence]):
        await heard(nats_client)
        await _ask_for(nats_client, "eve", 60)
        await _ask_for(nats_client, "anna", 1)
        await NatsRequester(nats_client).request("ioa.v1.test.fence", Ask(), Ask)  # it comes behind all the others
        all_are_there.set()
        await eventually(lambda: done, lambda known: len(known) == 61)
    assert done.index("anna") < 10


async def test_what_costs_much_has_a_part_of_the_time(nats_client: Client) -> None:
    """After half a second at once a quarter of the time, however many ask: the rest is for what keeps goals going."""
    done: list[str] = []
    endpoint = ServiceEndpoint("shared", _SUBJECT, _busy(0.01, done), at_most=250)
    async with open_service(nats_client, "ioa-test", "Tests", "0.1.0", [endpoint]):
        await heard(nats_client)
        began = time.monotonic()
        for asker in ("eve", "mallory"):
            await _ask_for(nats_client, asker, 50)
        await eventually(lambda: done, lambda known: len(known) == 100)
    assert time.monotonic() - began > (100 * 0.01 - 0.5 - 4 * 0.02) / 0.25


async def test_who_asks_for_much_is_told_when_to_come_back(nats_client: Client) -> None:
    """Where a request says as how many it counts, each of those who ask has so many, by what the server tells of them."""
    done: list[str] = []

    async def note(_subject: str, data: bytes) -> bytes:
        done.append(data.decode())
        return data

    endpoint = ServiceEndpoint("shared", _SUBJECT, note, family=Family.READS, at_most=250, counts=lambda data: len(data) * 100)
    bounds = Bounds(rates={Family.READS: Rate(100, 1_000)})
    async with open_service(nats_client, "ioa-test", "Tests", "0.1.0", [endpoint], bounds=bounds):
        await heard(nats_client)
        await _ask_for(nats_client, "eve", 3)
        await _ask_for(nats_client, "anna", 1)
        await eventually(lambda: done, lambda known: "anna" in known)
        shown = {SHOWN_ASKER: json.dumps({"acc": "IOA_USERS", "user": "eve"})}
        refused = await nats_client.request(_SUBJECT, b"eve", headers=shown)
    assert (done.count("eve"), (refused.headers or {})["Nats-Service-Error-Code"]) == (3, row_of(RateLimitedError).wire_code)


async def test_what_waits_of_who_floods_is_not_worked_off(nats_client: Client) -> None:
    """It is refused; what waits of others is answered."""
    done, may_answer = list[str](), asyncio.Event()

    async def note(_subject: str, data: bytes) -> bytes:
        await may_answer.wait()
        done.append(data.decode())
        return data

    endpoint = ServiceEndpoint("shared", _SUBJECT, note, family=Family.READS, at_most=4_000, counts=lambda _data: 1)
    bounds = Bounds(rates={Family.READS: Rate(1, 40)})
    shown = {SHOWN_ASKER: json.dumps({"acc": "IOA_USERS", "user": "eve"})}
    async with open_service(nats_client, "ioa-test", "Tests", "0.1.0", [endpoint], bounds=bounds):
        await heard(nats_client)
        await _ask_for(nats_client, "eve", 20)
        waited = asyncio.create_task(nats_client.request(_SUBJECT, b"eve", headers=shown, timeout=10))
        await asyncio.sleep(0)
        await _ask_for(nats_client, "anna", 10)
        await _ask_for(nats_client, "eve", 1_000)
        refused = await waited
        may_answer.set()
        await eventually(lambda: done, lambda known: known.count("anna") == 10)
    assert ((refused.headers or {})["Nats-Service-Error-Code"], done.count("eve")) == (row_of(RateLimitedError).wire_code, 4)


@pytest.mark.parametrize("most_waiting", [1_000, 2])
async def test_nothing_is_kept_of_whose_requests_were_not_answered(
    nats_client: Client, monkeypatch: pytest.MonkeyPatch, most_waiting: int
) -> None:
    """A replica that is asked for more than it can answer is asked by many, each of whom is forgotten."""
    made, may_answer, answered = list[RequestDispatcher](), asyncio.Event(), 0

    def make(*given: Any) -> RequestDispatcher:
        made.append(RequestDispatcher(*given))
        return made[0]

    async def wait(_subject: str, data: bytes) -> bytes:
        nonlocal answered
        await may_answer.wait()
        answered += 1
        return data

    monkeypatch.setattr(service, "RequestDispatcher", make)
    endpoint = ServiceEndpoint("shared", _SUBJECT, wait, family=Family.READS, at_most=4_000, counts=lambda _data: 1)
    bounds = Bounds(max_queued=most_waiting)
    async with open_service(nats_client, "ioa-test", "Tests", "0.1.0", [endpoint], bounds=bounds):
        await heard(nats_client)
        for number in range(20):
            shown = {SHOWN_ASKER: json.dumps({"acc": "IOA_USERS", "user": str(number)}), "Ioa-Patience": "100"}
            await nats_client.publish(_SUBJECT, b"", reply="nobody", headers=shown)
        await eventually(lambda: made[0]._waiting, bool)
        await asyncio.sleep(0.2)
        may_answer.set()
        await eventually(lambda: made[0]._waiting, lambda waiting: not waiting)
        await eventually(lambda: made[0]._shared.in_flight, lambda in_flight: not in_flight)
        assert (answered, list(made[0]._lanes)) == (4, [])


async def test_nothing_of_their_headers_is_kept_while_requests_wait_or_are_answered(
    nats_client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What may wait of a caller is counted by its data: 64 requests of a few bytes would have 26 MB of headers, of each caller."""
    made, kept, may_answer = list[RequestDispatcher](), list[Request](), asyncio.Event()

    def make(*given: Any) -> RequestDispatcher:
        made.append(RequestDispatcher(*given))
        return made[0]

    def keep(message: Msg) -> Request:
        kept.append(Request(message))
        return kept[-1]

    async def wait(_subject: str, data: bytes) -> bytes:
        await may_answer.wait()
        return data

    monkeypatch.setattr(service, "RequestDispatcher", make)
    monkeypatch.setattr(dispatching, "Request", keep)
    endpoint = ServiceEndpoint("shared", _SUBJECT, wait, family=Family.READS, at_most=4_000, counts=lambda _data: 1)
    async with open_service(nats_client, "ioa-test", "Tests", "0.1.0", [endpoint]):
        await heard(nats_client)
        shown = {SHOWN_ASKER: json.dumps({"acc": "IOA_USERS", "user": "eve"}), "Ioa-Patience": "100000", "A": "\U00010348" * 20_000}
        for _ in range(10):
            await nats_client.publish(_SUBJECT, b"{}", reply="nobody", headers=shown)
        await eventually(lambda: kept, lambda found: len(found) >= 10)
        waiting = made[0]._waiting
        may_answer.set()
    assert waiting > 0
    assert not any(one.headers for one in kept)


async def test_what_holds_up_others_counts_by_its_time(nats_client: Client) -> None:
    """By that which it takes itself, however little it counts as before; what is refused counts for nothing more."""
    done: list[str] = []

    async def note(_subject: str, data: bytes) -> bytes:
        done.append(data.decode())
        if data == b"anna":
            raise NotFoundError("There is no such thing.")
        return data

    endpoint = ServiceEndpoint("shared", _SUBJECT, note, family=Family.READS, at_most=250, counts=lambda _data: 1)
    bounds = Bounds(rates={Family.READS: Rate(100, 100, second_counts=10**12)})
    await _asked_in_turn(nats_client, endpoint, bounds)
    assert done == ["eve", "anna", "anna"]


async def _asked_in_turn(client: Client, endpoint: ServiceEndpoint, bounds: Bounds) -> None:
    """Have eve ask twice, and then anna twice."""
    async with open_service(client, "ioa-test", "Tests", "0.1.0", [endpoint], bounds=bounds):
        await heard(client)
        for asker in ("eve", "eve", "anna", "anna"):
            shown = {SHOWN_ASKER: json.dumps({"acc": "IOA_USERS", "user": asker})}
            await client.request(_SUBJECT, asker.encode(), headers=shown)


async def test_what_others_do_meanwhile_counts_for_nobody_who_waits(nats_client: Client) -> None:
    """A request that waits while others are worked on is charged neither with their time, nor with how long it waited."""
    done, waits = list[str](), asyncio.Event()

    async def wait(_subject: str, data: bytes) -> bytes:
        waits.set()
        await asyncio.sleep(0.3)
        done.append(data.decode())
        return data

    async def work_beside() -> None:
        await waits.wait()
        for _ in range(25):
            _work(0.01)
            await asyncio.sleep(0)

    endpoint = ServiceEndpoint("shared", _SUBJECT, wait, family=Family.READS, at_most=250, counts=lambda _data: 1)
    bounds = Bounds(rates={Family.READS: Rate(100, 100, second_counts=1_000)})
    shown = {SHOWN_ASKER: json.dumps({"acc": "IOA_USERS", "user": "anna"})}
    async with open_service(nats_client, "ioa-test", "Tests", "0.1.0", [endpoint], bounds=bounds):
        await heard(nats_client)
        for _ in range(3):
            waits.clear()
            async with asyncio.TaskGroup() as group:
                group.create_task(work_beside())
                await nats_client.request(_SUBJECT, b"anna", headers=shown, timeout=10)
    assert done == ["anna"] * 3


async def test_what_is_searched_for_others_counts_by_the_time_that_it_takes(nats_client: Client) -> None:
    """It is the server that has worked meanwhile, and nothing else is served on that subject."""
    done: list[str] = []

    async def search(_subject: str, data: bytes) -> bytes:
        await asyncio.sleep(0.2)
        done.append(data.decode())
        return data

    endpoint = ServiceEndpoint(
        *("shared", _SUBJECT, search),
        family=Family.READS,
        at_most=250,
        counts=lambda _data: 1,
        searches=lambda data: data == b"eve",
    )
    bounds = Bounds(rates={Family.READS: Rate(100, 100, second_counts=1_000)})
    await _asked_in_turn(nats_client, endpoint, bounds)
    assert done == ["eve", "anna", "anna"]


async def test_who_waits_takes_no_part_of_the_time(nats_client: Client) -> None:
    """Requests that wait, while the service works on others, do not use up the part that their subjects have."""
    done: list[str] = []

    async def wait(_subject: str, data: bytes) -> bytes:
        await asyncio.sleep(0.2)
        done.append(data.decode())
        return data

    async def work_beside() -> None:
        while True:
            _work(0.01)
            await asyncio.sleep(0)

    endpoint = ServiceEndpoint("shared", _SUBJECT, wait, at_most=250)
    async with open_service(nats_client, "ioa-test", "Tests", "0.1.0", [endpoint]), asyncio.TaskGroup() as group:
        await heard(nats_client)
        began, working = time.monotonic(), group.create_task(work_beside())
        await _ask_for(nats_client, "anna", 24)
        await eventually(lambda: done, lambda known: len(known) == 24)
        working.cancel()
    assert time.monotonic() - began < 4
