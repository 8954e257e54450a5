"""Reading a stream on a real server while others write to it."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing, asynccontextmanager
from typing import Any

import pytest
from nats.aio.client import Client
from nats.aio.msg import Msg

from ioa.adapters.nats import reading
from ioa.adapters.nats.connection import NatsSettings, open_connection
from ioa.adapters.nats.direct_gets import StreamPage
from ioa.adapters.nats.following import follow_subject
from ioa.adapters.nats.in_turns import ask_in_turns
from ioa.adapters.nats.requester import NatsRequester
from ioa.adapters.nats.streams import next_messages


@pytest.mark.parametrize("others", [0, 3])
@pytest.mark.parametrize("limit", [1, 5, 40])
async def test_the_last_messages_are_found_while_more_come(
    nats_url: str, monkeypatch: pytest.MonkeyPatch, limit: int, others: int
) -> None:
    """Whoever reads back from the end of what is written meanwhile is told what lay before it, as many as were asked for."""

    async def write(client: Client, count: int) -> None:
        for number in range(count):
            subject = "log.other" if others and number % (others + 1) else "log.one"
            await client.jetstream().publish(subject, b"")

    async def next_while_written(
        client: Client, stream: str, subject: str, *, after: int, limit: int, max_bytes: int | None = None
    ) -> StreamPage:
        await write(client, 10)
        return await next_messages(client, stream, subject, after=after, limit=limit, max_bytes=max_bytes)

    monkeypatch.setattr(reading, "next_messages", next_while_written)
    async with open_connection(NatsSettings(nats_url, "reader")) as client:
        await client.jetstream().add_stream(name="LOG", subjects=["log.*"], allow_direct=True)
        await write(client, 200)
        stored = [one.seq for one in (await next_messages(client, "LOG", "log.one", after=0, limit=1_000)).messages]
        for before in (stored[-1] + 1, stored[-1], stored[len(stored) // 2], stored[0] + 1):
            async with asyncio.timeout(20):
                found = await reading.messages_before(client, "LOG", "log.one", before=before, limit=limit)
            expected = [seq for seq in stored if seq < before][-limit:]
            assert [one.seq for one in found][-limit:] == expected, before


class _OneByOne:
    """Turns of which one comes at a time; they note how much each may read."""

    def __init__(self) -> None:
        self.asked = Counter[int]()
        self._lock = asyncio.Lock()

    @asynccontextmanager
    async def reading(self, most_bytes: int) -> AsyncIterator[None]:
        async with self._lock:
            self.asked[most_bytes] += 1
            yield

    @asynccontextmanager
    async def asking(self) -> AsyncIterator[None]:
        async with self.reading(0):
            yield


async def _answer(message: Msg) -> None:
    await message.respond(b"")


async def test_all_that_is_read_over_a_connection_takes_turns(nats_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """However reading is called, a turn is waited for, and no request has the server send as much as it keeps for a connection."""
    async with open_connection(NatsSettings(nats_url, "reader")) as client:
        await client.jetstream().add_stream(name="LOG", subjects=["log.*"], allow_direct=True)
        for number in range(8):
            await client.jetstream().publish(f"log.{number}", b"x" * 600_000)
        going, most, turns = 0, 0, _OneByOne()
        request = client.request

        async def counted(*args: Any, **named: Any) -> Any:
            nonlocal going, most
            going += 1
            most = max(most, going)
            try:
                return await request(*args, **named)
            finally:
                going -= 1

        monkeypatch.setattr(client, "request", counted)
        ask_in_turns(client, turns)
        found = await reading.last_of(client, "LOG", [f"log.{number}" for number in range(8)])
        page = await next_messages(client, "LOG", ">", after=0, limit=8)
        before = await reading.messages_before(client, "LOG", "log.*", before=8, limit=7)
        await client.subscribe("service", cb=_answer)
        await asyncio.gather(*(NatsRequester(client).ask("service", b"") for _ in range(5)))
        assert (len(found), most, turns.asked[1_000_000] >= 8, turns.asked[0], max(turns.asked)) == (8, 1, True, 5, 3_000_000)
        assert (len(page.messages), page.pending, len(before)) == (4, 4, 7)


async def test_what_many_wait_for_is_sent_once(nats_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who waits for a large result a thousand times has the server send it unasked once, and is told it each time."""
    subscribed, both = Counter[str](), asyncio.Event()
    async with open_connection(NatsSettings(nats_url, "reader")) as client:
        await client.jetstream().add_stream(name="LOG", subjects=["log.*"], allow_direct=True)
        subscribe: Callable[..., Any] = client.subscribe

        async def counted(subject: str, **named: Any) -> Any:
            subscribed[subject] += 1
            if len(subscribed) > 1:
                both.set()
            return await subscribe(subject, **named)

        monkeypatch.setattr(client, "subscribe", counted)

        async def wait(subject: str) -> bytes:
            async with aclosing(follow_subject(client, "LOG", subject)) as messages:
                async for message in messages:
                    return message.data
            raise AssertionError("a subject is followed for ever")

        async with asyncio.timeout(20), asyncio.TaskGroup() as group:
            waiting = [group.create_task(wait("log.one")) for _ in range(20)]
            gone = group.create_task(wait("log.none"))
            await both.wait()
            gone.cancel()
            await client.jetstream().publish("log.one", b"x")
        again = await wait("log.one")
        assert ({one.result() for one in waiting} | {again}, subscribed["log.one"], subscribed["log.none"]) == ({b"x"}, 2, 1)
