"""Reading a stream on a real server while others write to it."""

from __future__ import annotations

import asyncio

import pytest
from nats.aio.client import Client

from ioa.adapters.nats.streams import stream_reader
from ioa.adapters.nats.streams.stream_reader import StreamPage, next_messages
from ioa.adapters.nats.wire.connection import NatsSettings, open_connection


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

    monkeypatch.setattr(stream_reader, "next_messages", next_while_written)
    async with open_connection(NatsSettings(nats_url, "reader")) as client:
        await client.jetstream().add_stream(name="LOG", subjects=["log.*"], allow_direct=True)
        await write(client, 200)
        stored = [one.seq for one in (await next_messages(client, "LOG", "log.one", after=0, limit=1_000)).messages]
        for before in (stored[-1] + 1, stored[-1], stored[len(stored) // 2], stored[0] + 1):
            async with asyncio.timeout(20):
                found = await stream_reader.messages_before(client, "LOG", "log.one", before=before, limit=limit)
            expected = [seq for seq in stored if seq < before][-limit:]
            assert [one.seq for one in found][-limit:] == expected, before
