"""Reads of streams by direct gets: pages, single messages, and the first and last messages of many subjects."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
from nats.aio.client import Client
from nats.js.api import StreamConfig

from ioa.adapters.nats.streams.stream import Stream, StreamPage
from ioa.adapters.nats.wire.connection import NatsSettings, open_connection
from ioa.protocol.codec import MAX_PAYLOAD_BYTES

_STREAM, _KEY = "READ", {"KV-Operation": "DEL", "Ioa-Reason": "it is late"}


@pytest.fixture
async def reader(client: Client) -> AsyncIterator[Client]:
    """A connection to a server with a stream."""
    js = client.jetstream()
    await js.add_stream(StreamConfig(name=_STREAM, subjects=["read.*"], allow_direct=True))
    yield client
    await js.delete_stream(_STREAM)


async def _store(client: Client, *sizes: int) -> None:
    for number, size in enumerate(sizes):
        await client.jetstream().publish(f"read.{number % 2}", bytes([number % 256]) * size, headers=_KEY)


async def test_pages(reader: Client) -> None:
    """In the order of sequences, with what is behind them."""
    await _store(reader, *[10] * 9)
    page = await Stream(reader, _STREAM).page("read.1", after=2, limit=2)
    assert ([(one.seq, one.subject, one.data) for one in page.messages], page.pending) == (
        [(4, "read.1", b"\x03" * 10), (6, "read.1", b"\x05" * 10)],
        1,
    )
    found = [one.seq async for one in Stream(reader, _STREAM).messages(">", batch=4)]
    assert found == list(range(1, 10))
    assert (await Stream(reader, _STREAM).page(">", after=9, limit=4)).messages == []


async def test_what_looks_like_a_word_of_the_server_is_read(reader: Client) -> None:
    """A stranger stored it so: it ended the page that it was in, or was no message."""
    for status in ("204", "404", "503", "?"):
        await reader.jetstream().publish("read.0", status.encode(), headers={"Status": status})
    page = await Stream(reader, _STREAM).page("read.0", after=0, limit=9)
    assert [(one.seq, one.data) for one in page.messages] == [(1, b"204"), (2, b"404"), (3, b"503"), (4, b"?")]
    found = [await Stream(reader, _STREAM).at(seq) for seq in (1, 2, 3, 4)]
    assert [one.data for one in found if one is not None] == [b"204", b"404", b"503", b"?"]


async def test_one_by_one(reader: Client) -> None:
    """By sequence, the last and the first of a subject; with headers and the time of storage."""
    await _store(reader, 3, 4, 5)
    found = [
        await Stream(reader, _STREAM).at(2),
        await Stream(reader, _STREAM).latest("read.0"),
        await Stream(reader, _STREAM).first("read.1"),
    ]
    assert [(one.seq, one.subject, one.data) for one in found if one is not None] == [
        (2, "read.1", b"\x01" * 4),
        (3, "read.0", b"\x02" * 5),
        (2, "read.1", b"\x01" * 4),
    ]
    assert all(one is not None and one.headers.items() >= _KEY.items() and one.stored_at is not None for one in found)
    assert await Stream(reader, _STREAM).at(9) is None


async def test_more_than_one_answer_holds(reader: Client) -> None:
    """Nothing is missing of what is larger than a message may be, and the largest message that there is is read."""
    largest = MAX_PAYLOAD_BYTES
    await _store(reader, largest, 400_000, 400_000, 400_000, 10, largest)
    found = [(one.seq, len(one.data)) async for one in Stream(reader, _STREAM).messages(">", batch=500)]
    assert found == [(1, largest), (2, 400_000), (3, 400_000), (4, 400_000), (5, 10), (6, largest)]


@pytest.mark.parametrize("others", [0, 3])
@pytest.mark.parametrize("limit", [1, 5, 40])
async def test_the_last_messages_are_found_while_more_come(
    nats_url: str, monkeypatch: pytest.MonkeyPatch, limit: int, others: int
) -> None:
    """A page read backwards from the end of a growing stream contains the requested number of earlier messages."""

    async def write(client: Client, count: int) -> None:
        for number in range(count):
            subject = "log.other" if others and number % (others + 1) else "log.one"
            await client.jetstream().publish(subject, b"")

    read_page = Stream.page

    async def read_while_written(self: Stream, subject: str, *, after: int, limit: int, max_bytes: int = 2_000_000) -> StreamPage:
        await write(self.client, 10)
        return await read_page(self, subject, after=after, limit=limit, max_bytes=max_bytes)

    async with open_connection(NatsSettings(nats_url, "reader")) as client:
        await client.jetstream().add_stream(name="LOG", subjects=["log.*"], allow_direct=True)
        await write(client, 200)
        stream = Stream(client, "LOG")
        stored = [one.seq async for one in stream.messages("log.one")]
        monkeypatch.setattr(Stream, "page", read_while_written)
        for before in (stored[-1] + 1, stored[-1], stored[len(stored) // 2], stored[0] + 1):
            async with asyncio.timeout(20):
                page = await stream.page_back("log.one", before=before, limit=limit)
            assert [one.seq for one in page.messages] == [seq for seq in reversed(stored) if seq < before][:limit], before
