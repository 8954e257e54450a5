"""What taking work off a queue promises: done once acknowledged, and back again otherwise."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from functools import partial
from operator import le

import nats.errors
import pytest
from nats.aio.client import Client
from nats.aio.msg import Msg

from ioa.adapters.nats.delivery import work_queue as nats_queues
from ioa.adapters.nats.delivery.nats_delivery import NatsDeadLetters
from ioa.adapters.nats.delivery.work_queue import MAX_FAILURES, Delivery, SetAside, Work, consume, into_dead_letters
from ioa.adapters.nats.streams.topology import ANY_AGENT, DEAD, WORK
from ioa.adapters.nats.wire.embedded_server import NatsServer
from ioa.concurrency import beside
from ioa.errors import UnavailableError
from ioa.protocol import subjects
from tests.contract.control_plane.conftest import nothing_is_poison
from tests.rig.deadline import eventually
from tests.rig.nats_server import crash


async def offer(client: Client, *texts: str) -> None:
    """Put work into the queue."""
    for text in texts:
        await client.jetstream().publish(subjects.WORK, text.encode(), stream=WORK)


async def left(client: Client) -> int:
    """How many messages the queue still holds."""
    try:
        return (await client.jetstream().stream_info(WORK)).state.messages
    except (nats.errors.Error, TimeoutError):
        return -1


@asynccontextmanager
async def worker(
    client: Client, work: Work, max_concurrent: int = 1, set_aside: SetAside = nothing_is_poison
) -> AsyncIterator[None]:
    """Somebody who works."""
    async with beside(consume(client, WORK, ANY_AGENT, work, set_aside=set_aside, max_concurrent=max_concurrent)):
        yield


async def test_work_that_fails_comes_back(client: Client) -> None:
    """What fails, foreseen or not, is tried again as the same message until it is done, and holds up nobody else."""
    attempts: list[tuple[str, int, str]] = []

    async def work(delivery: Delivery) -> None:
        attempts.append((delivery.data.decode(), delivery.attempt, delivery.identity))
        if delivery.data == b"hard" and delivery.attempt == 1:
            raise UnavailableError("Not now.")
        if delivery.data == b"hard" and delivery.attempt == 2:
            raise ZeroDivisionError

    await offer(client, "hard", "easy")
    async with worker(client, work):
        await eventually(lambda: left(client), lambda count: count == 0)
    assert [(text, number) for text, number, _ in attempts] == [("hard", 1), ("easy", 1), ("hard", 2), ("hard", 3)]
    assert len({identity for text, _, identity in attempts if text == "hard"}) == 1


async def test_redelivered_message_is_not_processed_concurrently(client: Client) -> None:
    """He may give it back as often as he likes, also when it is another's: the server gives it out each time."""
    begun, others_done, may_end = list[str](), asyncio.Event(), asyncio.Event()

    async def work(delivery: Delivery) -> None:
        begun.append(delivery.data.decode())
        if delivery.data == b"hers":
            others_done.set()
        else:
            await may_end.wait()

    async def redelivered() -> int:
        return (await client.jetstream().consumer_info(WORK, ANY_AGENT)).delivered.consumer_seq or 0

    await offer(client, "his")
    [taken] = await (await client.jetstream().pull_subscribe_bind(ANY_AGENT, WORK)).fetch(1)
    await taken.nak()
    async with worker(client, work, max_concurrent=3):
        await eventually(lambda: begun, lambda known: known == ["his"])
        for number in range(3, 8):
            await client.publish(taken.reply, b"-NAK")
            await eventually(redelivered, partial(le, number))
        await offer(client, "hers")
        await asyncio.wait_for(others_done.wait(), 5)
        assert begun == ["his", "hers"]
        may_end.set()
        await eventually(lambda: left(client), lambda count: count == 0)
    assert begun == ["his", "hers"]


async def test_poison_is_set_aside_and_holds_up_nobody(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    """What fails five times is a dead letter with the last reason, and leaves the queue; what waits behind it is done meanwhile."""
    monkeypatch.setattr(nats_queues, "_RETRY_AFTER", timedelta(milliseconds=10))
    attempts: list[str] = []
    others_done = asyncio.Event()

    async def work(delivery: Delivery) -> None:
        attempts.append(delivery.data.decode())
        if {"a", "b"} <= set(attempts):
            others_done.set()
        if delivery.data == b"poison":
            if delivery.attempt > 1:
                await others_done.wait()
            raise ZeroDivisionError("no \ud800 result")

    await offer(client, "poison", "a", "b")
    letters = NatsDeadLetters(client)
    async with worker(client, work, max_concurrent=2, set_aside=into_dead_letters(letters)):
        await eventually(lambda: left(client), lambda count: count == 0)
    kept = await client.jetstream().get_last_msg(DEAD, "ioa.v1.dead.undeliverable")
    why = "The work on it failed 5 times: ZeroDivisionError: no ? result"
    assert (kept.data, kept.headers["Ioa-Reason"], kept.headers["Ioa-Subject"]) == (b"poison", why, subjects.WORK)  # type: ignore[index]
    assert (attempts[0], sorted(attempts)) == ("poison", ["a", "b"] + ["poison"] * MAX_FAILURES)


async def test_an_outage_is_no_poison(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    """What cannot be done since something is away comes back without end, however often it failed otherwise in between."""
    monkeypatch.setattr(nats_queues, "_RETRY_AFTER", timedelta(milliseconds=1))
    monkeypatch.setattr(nats_queues, "_MAX_RETRY_AFTER", timedelta(milliseconds=1))
    errors = [UnavailableError("Away."), OSError("gone"), nats.errors.TimeoutError()] * 4 + [ValueError("odd")] * (MAX_FAILURES - 1)
    attempts: list[int] = []

    async def work(delivery: Delivery) -> None:
        attempts.append(delivery.attempt)
        if errors:
            raise errors.pop()

    await offer(client, "x")
    async with worker(client, work):
        await eventually(lambda: left(client), lambda count: count == 0)
    assert attempts == list(range(1, 12 + MAX_FAILURES + 1))


async def test_poison_that_cannot_be_set_aside_stays(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    """While its place is out of reach, poison comes back; nothing is lost."""
    monkeypatch.setattr(nats_queues, "_RETRY_AFTER", timedelta(milliseconds=1))
    monkeypatch.setattr(nats_queues, "_MAX_RETRY_AFTER", timedelta(milliseconds=1))
    refused: list[int] = []

    async def work(_: Delivery) -> None:
        raise ValueError("odd")

    async def set_aside(delivery: Delivery, _: Exception) -> None:
        if len(refused) < 3:
            refused.append(delivery.attempt)
            raise UnavailableError("Away.")

    await offer(client, "x")
    async with worker(client, work, set_aside=set_aside):
        await eventually(lambda: left(client), lambda count: count == 0)
    assert refused == [5, 6, 7]


async def test_what_fails_comes_back_later_each_time(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    """A message stays away twice as long after each delivery, up to a bound, unless the error says how long."""
    delays: list[float] = []
    give_back = nats_queues._give_back

    async def noted(message: Msg, delay: timedelta | None) -> None:
        delays.append(delay.total_seconds() if delay is not None else 0)
        await give_back(message, timedelta(milliseconds=1))

    monkeypatch.setattr(nats_queues, "_give_back", noted)

    async def work(delivery: Delivery) -> None:
        if delivery.attempt == 3:
            raise UnavailableError("Soon.", retry_after=timedelta(seconds=0.5))
        if delivery.attempt < 9:
            raise UnavailableError("Away.")

    await offer(client, "x")
    async with worker(client, work):
        await eventually(lambda: left(client), lambda count: count == 0)
    assert delays == [1, 2, 0.5, 8, 16, 30, 30, 30]


async def test_cancelled_work_is_given_back_at_once(client: Client) -> None:
    """A worker that is told to stop gives back what it has not finished, so that another need not wait."""
    taken, never = asyncio.Event(), asyncio.Event()
    done: list[int] = []

    async def hang(_: Delivery) -> None:
        taken.set()
        await never.wait()

    async def work(delivery: Delivery) -> None:
        done.append(delivery.attempt)

    await offer(client, "x")
    async with worker(client, hang):
        await taken.wait()
    async with asyncio.timeout(5), worker(client, work):
        await eventually(lambda: left(client), lambda count: count == 0)
    assert done == [2]


async def test_work_is_done_side_by_side_up_to_a_limit(client: Client) -> None:
    """A worker takes as many messages at once as it was told, and no more."""
    running, most, done = 0, 0, asyncio.Semaphore(0)
    full = asyncio.Event()

    async def work(_: Delivery) -> None:
        nonlocal running, most
        running += 1
        most = max(most, running)
        if running == 3:
            full.set()
        await full.wait()
        running -= 1
        done.release()

    await offer(client, *"abcdef")
    async with worker(client, work, max_concurrent=3):
        for _ in range(6):
            await asyncio.wait_for(done.acquire(), 10)
    assert most == 3


async def test_a_worker_works_again_after_a_crash_of_the_server(client: Client, nats_server: NatsServer) -> None:
    """Work that was waiting when nats-server was killed is done by the same worker as soon as its connection is back."""
    done: list[str] = []

    async def work(delivery: Delivery) -> None:
        done.append(delivery.data.decode())

    async with worker(client, work):
        await offer(client, "before")
        await eventually(lambda: left(client), lambda count: count == 0)
        await crash(nats_server)
        await nats_server.start()
        await eventually(lambda: client.is_connected)
        await offer(client, "after")
        await eventually(lambda: left(client), lambda count: count == 0, within=timedelta(seconds=2))
    assert done == ["before", "after"]
