"""Reading a stream on a real server while others write to it."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from nats.aio.client import Client

from ioa.adapters.nats import reading
from ioa.adapters.nats.connection import NatsSettings, open_connection
from ioa.adapters.nats.direct_gets import StreamPage, limit_reads
from ioa.adapters.nats.streams import next_messages
from ioa.fair_semaphore import FairSemaphore


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


async def test_reads_over_a_limited_connection_wait_for_slots(nats_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every read takes a slot, also those that are made of several."""
    async with open_connection(NatsSettings(nats_url, "reader")) as client:
        await client.jetstream().add_stream(name="LOG", subjects=["log.*"], allow_direct=True)
        for number in range(8):
            await client.jetstream().publish(f"log.{number}", b"x" * 600_000)
        running, most, slots = 0, 0, FairSemaphore(1)
        request = client.request

        async def counted(*args: Any, **named: Any) -> Any:
            nonlocal running, most
            running += 1
            most = max(most, running)
            try:
                return await request(*args, **named)
            finally:
                running -= 1

        monkeypatch.setattr(client, "request", counted)
        limit_reads(client, lambda: slots.slot("anna"))
        found = await reading.last_of(client, "LOG", [f"log.{number}" for number in range(8)])
        page = await next_messages(client, "LOG", ">", after=0, limit=8)
        before = await reading.messages_before(client, "LOG", "log.*", before=8, limit=7)
        assert (len(found), most) == (8, 1)
        assert (len(page.messages), page.pending, len(before)) == (4, 4, 7)
