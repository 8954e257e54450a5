"""What taking work off a queue promises: done once acknowledged, and back again otherwise."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta

import nats.errors
from nats.aio.client import Client

from ioa.adapters.nats_connection import NatsSettings, open_connection
from ioa.adapters.nats_queues import Delivery, Work, consume
from ioa.adapters.nats_server import NatsServer
from ioa.adapters.nats_topology import ANY_AGENT, WORK
from ioa.errors import UnavailableError
from ioa.protocol import subjects
from ioa.runtime.process import background
from ioa.testing.deadline import eventually
from ioa.testing.nats_server import crash


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
async def worker(client: Client, work: Work, side_by_side: int = 1) -> AsyncIterator[None]:
    """Somebody who works."""
    async with background(consume(client, WORK, ANY_AGENT, work, side_by_side=side_by_side)):
        yield


async def test_work_that_is_done_leaves_the_queue(nats_client: Client) -> None:
    """Each message is worked on once, in order, and is gone."""
    done: list[tuple[str, int]] = []

    async def work(delivery: Delivery) -> None:
        done.append((delivery.data.decode(), delivery.attempt))

    await offer(nats_client, "a", "b", "c")
    async with worker(nats_client, work):
        await eventually(lambda: left(nats_client), lambda count: count == 0)
    assert done == [("a", 1), ("b", 1), ("c", 1)]


async def test_work_that_fails_comes_back(nats_client: Client) -> None:
    """What fails, foreseen or not, is tried again as the same message until it is done, and holds up nobody else."""
    attempts: list[tuple[str, int, str]] = []

    async def work(delivery: Delivery) -> None:
        attempts.append((delivery.data.decode(), delivery.attempt, delivery.identity))
        if delivery.data == b"hard" and delivery.attempt == 1:
            raise UnavailableError("Not now.")
        if delivery.data == b"hard" and delivery.attempt == 2:
            raise ZeroDivisionError

    await offer(nats_client, "hard", "easy")
    async with worker(nats_client, work):
        await eventually(lambda: left(nats_client), lambda count: count == 0)
    assert [(text, number) for text, number, _ in attempts] == [("hard", 1), ("easy", 1), ("hard", 2), ("hard", 3)]
    assert len({identity for text, _, identity in attempts if text == "hard"}) == 1


async def test_two_messages_are_never_taken_for_one(nats_client: Client) -> None:
    """Equal messages have identities of their own."""
    identities: list[str] = []

    async def work(delivery: Delivery) -> None:
        identities.append(delivery.identity)

    await offer(nats_client, "same", "same")
    async with worker(nats_client, work):
        await eventually(lambda: left(nats_client), lambda count: count == 0)
    assert len(set(identities)) == 2


async def test_cancelled_work_is_given_back_at_once(nats_client: Client) -> None:
    """A worker that is told to stop gives back what it has not finished, so that another need not wait."""
    taken, never = asyncio.Event(), asyncio.Event()
    done: list[int] = []

    async def hang(_: Delivery) -> None:
        taken.set()
        await never.wait()

    async def work(delivery: Delivery) -> None:
        done.append(delivery.attempt)

    await offer(nats_client, "x")
    async with worker(nats_client, hang):
        await taken.wait()
    async with asyncio.timeout(5), worker(nats_client, work):
        await eventually(lambda: left(nats_client), lambda count: count == 0)
    assert done == [2]


async def test_work_is_done_side_by_side_up_to_a_limit(nats_client: Client) -> None:
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

    await offer(nats_client, *"abcdef")
    async with worker(nats_client, work, side_by_side=3):
        for _ in range(6):
            await asyncio.wait_for(done.acquire(), 10)
    assert most == 3


async def test_workers_share_a_queue(nats_client: Client, nats_server: NatsServer) -> None:
    """Two workers do every message once between them."""
    done: list[str] = []

    async def work(delivery: Delivery) -> None:
        done.append(delivery.data.decode())

    expected = [str(number) for number in range(30)]
    async with (
        open_connection(NatsSettings(nats_server.url, "second")) as second,
        worker(nats_client, work, 4),
        worker(second, work, 4),
    ):
        await offer(nats_client, *expected)
        await eventually(lambda: left(nats_client), lambda count: count == 0)
    assert sorted(done, key=int) == expected


async def test_a_worker_works_again_after_a_crash_of_the_server(nats_client: Client, nats_server: NatsServer) -> None:
    """Work that was waiting when nats-server was killed is done by the same worker as soon as its connection is back."""
    done: list[str] = []

    async def work(delivery: Delivery) -> None:
        done.append(delivery.data.decode())

    async with worker(nats_client, work):
        await offer(nats_client, "before")
        await eventually(lambda: left(nats_client), lambda count: count == 0)
        await crash(nats_server)
        await nats_server.start()
        await eventually(lambda: nats_client.is_connected)
        await offer(nats_client, "after")
        await eventually(lambda: left(nats_client), lambda count: count == 0, within=timedelta(seconds=2))
    assert done == ["before", "after"]
