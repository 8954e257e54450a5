"""Reading streams: who asks group setup reads what JetStream gives to those who may ask it, in as many answers as that takes."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack

import pytest
from nats.aio.client import Client
from nats.js.api import StreamConfig
from nats.js.errors import NotFoundError
from pydantic_core import to_json

from ioa.adapters.nats.connection import NatsSettings, open_connection
from ioa.adapters.nats.direct_gets import answering_reads
from ioa.adapters.nats.endpoints import ServiceEndpoint
from ioa.adapters.nats.reading import DirectReads, first_of, last_of, messages_before, previous_messages
from ioa.adapters.nats.request import NatsRequester
from ioa.adapters.nats.service import open_service
from ioa.adapters.nats.streams import last_messages, next_messages, pages
from ioa.errors import InvalidInputError, IoaError, PayloadTooLargeError
from ioa.protocol import subjects
from ioa.protocol.codec import MAX_PAYLOAD_BYTES
from tests.contract.control_plane.conftest import heard

_STREAM, _KEY = "READ", {"KV-Operation": "DEL", "Ioa-Reason": "it is late"}


@pytest.fixture(params=["JetStream", "group setup"])
async def reader(request: pytest.FixtureRequest, nats_url: str) -> AsyncIterator[Client]:
    """A connection that reads in one of the two ways."""
    asks = request.param != "JetStream"
    async with AsyncExitStack() as stack:
        service = await stack.enter_async_context(open_connection(NatsSettings(nats_url, "service")))
        js = service.jetstream()
        await js.add_stream(StreamConfig(name=_STREAM, subjects=["read.*"], allow_direct=True))
        stack.push_async_callback(js.delete_stream, _STREAM)
        endpoint = ServiceEndpoint("read", subjects.ANY_READ, answering_reads(service, (_STREAM,)))
        await stack.enter_async_context(open_service(service, "ioa-test", "Tests", "0.1.0", [endpoint]))
        await heard(service)
        yield await stack.enter_async_context(open_connection(NatsSettings(nats_url, "reader", asks_to_read=asks)))


async def _store(client: Client, *sizes: int) -> None:
    for number, size in enumerate(sizes):
        await client.jetstream().publish(f"read.{number % 2}", bytes([number % 256]) * size, headers=_KEY)


async def test_pages(reader: Client) -> None:
    """In the order of sequences, with what is behind them."""
    await _store(reader, *[10] * 9)
    page = await next_messages(reader, _STREAM, "read.1", after=2, limit=2)
    assert ([(one.seq, one.subject, one.data) for one in page.messages], page.pending) == (
        [(4, "read.1", b"\x03" * 10), (6, "read.1", b"\x05" * 10)],
        1,
    )
    found = [one.seq async for each in pages(reader, _STREAM, ">", limit=4) for one in each.messages]
    assert found == list(range(1, 10))
    assert (await next_messages(reader, _STREAM, ">", after=9, limit=4)).messages == ()


async def test_what_looks_like_a_word_of_the_server_is_read(reader: Client) -> None:
    """A stranger stored it so: it ended the page that it was in, or was no message."""
    for status in ("204", "404", "503", "?"):
        await reader.jetstream().publish("read.0", status.encode(), headers={"Status": status})
    page = await next_messages(reader, _STREAM, "read.0", after=0, limit=9)
    assert [(one.seq, one.data) for one in page.messages] == [(1, b"204"), (2, b"404"), (3, b"503"), (4, b"?")]
    assert [(await DirectReads(reader).get_msg(_STREAM, seq)).data for seq in (1, 2, 3, 4)] == [b"204", b"404", b"503", b"?"]


async def test_what_does_not_fit_into_an_answer_with_its_place_ends_no_connection(nats_url: str) -> None:
    """It was stored as large as the server takes messages, so that each reading of it ended the connection of who answers."""
    async with AsyncExitStack() as stack:
        service = await stack.enter_async_context(open_connection(NatsSettings(nats_url, "service")))
        js = service.jetstream()
        await js.add_stream(StreamConfig(name=_STREAM, subjects=["read.*"], allow_direct=True))
        stack.push_async_callback(js.delete_stream, _STREAM)
        await js.publish("read.0", bytes(service.max_payload - 10))
        endpoint = ServiceEndpoint("read", subjects.ANY_READ, answering_reads(service, (_STREAM,)))
        await stack.enter_async_context(open_service(service, "ioa-test", "Tests", "0.1.0", [endpoint]))
        await heard(service)
        reader = await stack.enter_async_context(open_connection(NatsSettings(nats_url, "reader", asks_to_read=True)))
        with pytest.raises(PayloadTooLargeError):
            await DirectReads(reader).get_msg(_STREAM, 1)
        assert service.stats["reconnects"] == 0


async def test_one_by_one(reader: Client) -> None:
    """By sequence, by subject and from a sequence on; with the headers and the time that it was stored with."""
    await _store(reader, 3, 4, 5)
    js = DirectReads(reader)
    found = [
        await js.get_msg(_STREAM, 2),
        await js.get_msg(_STREAM, subject="read.0"),
        await js.get_msg(_STREAM, 2, "read.0", next=True),
    ]
    assert [(one.seq, one.subject, one.data) for one in found] == [
        (2, "read.1", b"\x01" * 4),
        (3, "read.0", b"\x02" * 5),
        (3, "read.0", b"\x02" * 5),
    ]
    assert all((one.headers or {}).items() >= _KEY.items() and one.time is not None for one in found)
    for asked in ({"seq": 9}, {"subject": "read.none"}, {"seq": 4, "subject": "read.0", "next": True}):
        with pytest.raises(NotFoundError):
            await js.get_msg(_STREAM, **asked)


async def test_the_first_and_the_last_of_many_subjects(reader: Client) -> None:
    """Side by side, or at once as they were when the stream had come so far."""
    await _store(reader, *[1] * 6)
    asked = ["read.0", "read.1", "read.none"]
    assert {name: one.seq for name, one in (await last_of(reader, _STREAM, asked)).items()} == {"read.0": 5, "read.1": 6}
    assert {name: one.seq for name, one in (await first_of(reader, _STREAM, asked)).items()} == {"read.0": 1, "read.1": 2}
    assert {one.subject: one.seq for one in await last_messages(reader, _STREAM, asked, up_to=4)} == {"read.0": 3, "read.1": 4}


async def test_backwards(reader: Client) -> None:
    """The newest of the stream, and those of a subject before a sequence."""
    await _store(reader, *[1] * 40)
    back = await previous_messages(reader, _STREAM, before=None, limit=3)
    assert ([one.seq for one in back.messages], back.before) == ([40, 39, 38], 38)
    assert [one.seq for one in await messages_before(reader, _STREAM, "read.0", before=30, limit=2)][-2:] == [27, 29]


async def test_more_than_one_answer_holds(reader: Client) -> None:
    """Nothing is missing of what is larger than a message may be, and the largest message that there is is read."""
    largest = MAX_PAYLOAD_BYTES
    await _store(reader, largest, 400_000, 400_000, 400_000, 10, largest)
    found = [(one.seq, len(one.data)) async for each in pages(reader, _STREAM, ">", limit=500) for one in each.messages]
    assert found == [(1, largest), (2, 400_000), (3, 400_000), (4, 400_000), (5, 10), (6, largest)]
    last = await last_messages(reader, _STREAM, ["read.0", "read.1"], up_to=6)
    assert {one.subject: len(one.data) for one in last} == {"read.0": 10, "read.1": largest}


_REFUSED: Mapping[str, Mapping[str, object]] = {
    "nothing": {},
    "two forms": {"seq": 1, "last_by_subj": "read.0"},
    "no sequence": {"seq": -1},
    "from nowhere": {"next_by_subj": ">"},
    "a batch of anything": {"seq": 1, "batch": 2},
    "too many": {"seq": 1, "next_by_subj": ">", "batch": 100_000},
    "so many bytes of one": {"seq": 1, "max_bytes": 9},
    "a pattern": {"multi_last": ["read.*"], "up_to_seq": 1},
    "all": {"multi_last": [">"], "up_to_seq": 1},
    "up to nowhere": {"multi_last": ["read.0"]},
    "too many subjects": {"multi_last": ["read.0"] * 1_001, "up_to_seq": 1},
    "too long a subject": {"last_by_subj": "x" * 600},
    "a time": {"start_time": "2026-01-01T00:00:00Z", "next_by_subj": ">", "batch": 5},
}


@pytest.mark.parametrize("why", _REFUSED)
async def test_other_requests_are_refused(client: Client, why: str) -> None:
    """What has none of the forms that our clients need gets as far as group setup."""
    data = to_json(_REFUSED[why])
    with pytest.raises(InvalidInputError):
        await answering_reads(client, (_STREAM,))(subjects.read(_STREAM), data)


async def test_of_other_streams_is_not_told(reader: Client) -> None:
    """Group setup reads more streams than those of which it tells."""
    with pytest.raises(IoaError, match="Nobody is told"):
        await NatsRequester(reader).send(subjects.read("KV_IOA_KEYS"), b'{"last_by_subj":">"}')
