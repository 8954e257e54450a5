"""Direct gets (NATS ADR-31), the way past the line in which JetStream answers all other requests: of it, or of group setup.

The control plane asks JetStream. Nobody outside may, and asks group setup, which takes few forms of request
(`ioa.protocol.stream_reads`): which of the two, the connection's settings say.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Mapping
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from weakref import WeakKeyDictionary

import nats.errors
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.js.api import Header
from nats.js.errors import APIError
from nats.js.errors import NotFoundError as NoSuchMessage

from ioa.adapters.nats.connection import asks_to_read, may_not_publish, retry_without_responders, until_connected
from ioa.adapters.nats.endpoints import HeadedAnswer, HeadedHandler
from ioa.adapters.nats.headers import SEQUENCE, writable
from ioa.adapters.nats.permissions import READS
from ioa.adapters.nats.request import NatsRequester
from ioa.adapters.nats.sinks import taking
from ioa.adapters.nats.translated_errors import unavailable_unless_answered
from ioa.cancellation import fail_after
from ioa.errors import ForbiddenError, NotFoundError, UnavailableError
from ioa.protocol import subjects
from ioa.protocol.codec import MAX_ANSWER_BYTES, MAX_PAYLOAD_BYTES, decode, decode_json, encode
from ioa.protocol.stream_reads import ReadRow, ReadStream, StreamRead

_READ_TIMEOUT = timedelta(seconds=10)
_SEVERAL_BYTES = 2_000_000
"""How much is read at once of several messages where nobody says: the server would send as much as it keeps for a connection."""
_END, _NOTHING_MORE, _NO_RESPONDERS = "204", "404", "503"
_STREAM, _SUBJECT = "Nats-Stream", "Nats-Subject"
_TIME, _PENDING = "Nats-Time-Stamp", "Nats-Num-Pending"
_OF_NATS = "Nats-"
"""How headers begin that are NATS's own, with what a direct get adds among them. They are told to nobody."""
_ANSWER_MESSAGES, _ANSWER_BYTES = 256, MAX_PAYLOAD_BYTES // 2
"""How much group setup tells at once, so that nobody waits long for who reads much; of a single message it tells, however large."""
_ROW_BYTES = 600
"""What it takes to tell of a message, beside its headers."""


@dataclass(frozen=True)
class StreamMessage:
    """A message of a stream, with the headers that it was stored with."""

    seq: int
    subject: str
    data: bytes
    headers: Mapping[str, str] = field(default_factory=dict)
    stored: str = ""
    """When, as the server says it (RFC 3339)."""

    @property
    def stored_at(self) -> datetime | None:
        """When it was stored."""
        return datetime.fromisoformat(self.stored) if self.stored else None


@dataclass(frozen=True)
class StreamPage:
    """Messages in the order of their sequences, and how many of those that were asked for are behind the last one."""

    messages: tuple[StreamMessage, ...]
    pending: int

    @property
    def complete(self) -> bool:
        """Whether there was nothing behind the last one."""
        return self.pending == 0


_read_slots: WeakKeyDictionary[Client, Callable[[], AbstractAsyncContextManager[None]]] = WeakKeyDictionary()


def limit_reads(client: Client, slot: Callable[[], AbstractAsyncContextManager[None]]) -> None:
    """Read streams over a connection only within a slot. nats-server disconnects a client with too many unread bytes."""
    _read_slots[client] = slot


async def read_stream(client: Client, stream: str, request: ReadStream, timeout: timedelta = _READ_TIMEOUT) -> StreamPage:
    """Read what is asked for; nothing, if there is nothing of it. Any replica of the stream answers, which may lag behind.

    Raises:
        UnavailableError: The stream cannot be read now.
        RateLimitedError: Too much is read by who asks, again and again for as long as an answer is waited for.
        ForbiddenError: Who asks may not read the stream.
    """
    if request.is_of_several and request.max_bytes is None:
        request = request.model_copy(update={"max_bytes": _SEVERAL_BYTES})
    async with _read_slots.get(client, nullcontext)():
        if asks_to_read(client):
            return await _ask_group_setup(client, stream, request, timeout)
        with unavailable_unless_answered(f"The stream {stream}"):
            return await retry_without_responders(partial(_direct_get, client, stream, request, timeout))


async def _ask_group_setup(client: Client, stream: str, request: ReadStream, timeout: timedelta) -> StreamPage:
    subject = subjects.read(stream)
    try:
        answer = await NatsRequester(client, timeout).send(subject, _written(request), is_repeatable=True)
    except UnavailableError:
        if not may_not_publish(client, subject):
            raise
        raise ForbiddenError(
            f"This credential may not read {stream}.",
            hint="IOA_NATS_SEED names whose it is: users and admins read goals, groups, results and dead letters, auditors the"
            " audit log, observers and agents none of them.",
        ) from None
    if not request.is_of_several:
        return _page_of_one(stream, answer)
    return _page_told(decode(StreamRead, answer.data, max_payload_bytes=MAX_ANSWER_BYTES))


def answering_reads(client: Client, streams: Collection[str]) -> HeadedHandler:
    """Make what answers requests for what some streams hold: which of them somebody may ask for, the subject tells.

    A single message is answered as it is stored, with the headers that a direct get adds, but without those that cannot be written.
    """

    async def answer(subject: str, data: bytes) -> bytes | HeadedAnswer:
        stream = subjects.parse_read(subject)
        if stream not in streams:
            raise NotFoundError(f"Nobody is told of the stream {stream}.")
        request = decode_json(ReadStream, data)
        if request.is_of_several:
            return encode(await _read_for_another(client, stream, request), max_payload_bytes=MAX_ANSWER_BYTES)
        found = (await read_stream(client, stream, request)).messages
        if not found:
            return HeadedAnswer(b"", {Header.STATUS.value: _NOTHING_MORE, Header.DESCRIPTION.value: "Message Not Found"})
        one = found[0]
        added = {_STREAM: stream, _SUBJECT: one.subject, SEQUENCE: str(one.seq), _TIME: one.stored}
        return HeadedAnswer(one.data, writable(one.headers) | added)

    return answer


async def _read_for_another(client: Client, stream: str, request: ReadStream) -> StreamRead:
    """Read what somebody asks for, as much of it as goes into one answer."""
    most = min(request.max_bytes or _ANSWER_BYTES, _ANSWER_BYTES)
    bounds = {"max_bytes": most, "batch": None if request.batch is None else min(request.batch, _ANSWER_MESSAGES)}
    page = await read_stream(client, stream, request.model_copy(update=bounds))
    rows, data, size = list[ReadRow](), list[bytes](), 0
    for one in page.messages:
        size += len(one.data) + sum(len(name) + len(value) for name, value in one.headers.items()) + _ROW_BYTES
        if rows and size > _ANSWER_BYTES:
            break
        row = ReadRow(seq=one.seq, subject=one.subject, stored=one.stored, headers=dict(one.headers), size_bytes=len(one.data))
        rows.append(row)
        data.append(one.data)
    return StreamRead(messages=tuple(rows), pending=page.pending + len(page.messages) - len(rows), data=b"".join(data))


def _written(request: ReadStream) -> bytes:
    return request.model_dump_json(exclude_defaults=True).encode()


async def _direct_get(client: Client, stream: str, request: ReadStream, timeout: timedelta) -> StreamPage:
    subject, asked = f"{READS}{stream}", _written(request)
    if not request.is_of_several:
        answer = await client.request(subject, asked, timeout=timeout.total_seconds())
        return _page_of_one(stream, answer)
    batch, inbox = _Batch(), client.new_inbox()
    async with taking(client, inbox, batch.take), fail_after(timeout.total_seconds()):
        await until_connected(client)
        await client.publish(subject, asked, reply=inbox)
        return await batch.page


def _page_of_one(stream: str, answer: Msg) -> StreamPage:
    status = (answer.headers or {}).get(Header.STATUS)
    if status == _NOTHING_MORE:
        return StreamPage((), 0)
    if status is not None:
        raise APIError(description=f"a direct get of {stream} was answered with {status}")
    return StreamPage((_message(answer),), 0)


def _page_told(read: StreamRead) -> StreamPage:
    """Take an answer of group setup apart."""
    found, at = list[StreamMessage](), 0
    for row in read.messages:
        found.append(StreamMessage(row.seq, row.subject, read.data[at : at + row.size_bytes], row.headers, row.stored))
        at += row.size_bytes
    return StreamPage(tuple(found), read.pending)


def _message(answer: Msg) -> StreamMessage:
    headers = answer.headers or {}
    own = {name: str(value) for name, value in headers.items() if not name.startswith(_OF_NATS)}  # no ASCII comes as an object
    return StreamMessage(int(headers[SEQUENCE]), headers[_SUBJECT], answer.data, own, headers.get(_TIME, ""))


class _Batch:
    """Gathers the messages that answer one request, until the one that says that no more will come."""

    def __init__(self) -> None:
        self.page: asyncio.Future[StreamPage] = asyncio.get_running_loop().create_future()
        self._messages: list[StreamMessage] = []
        self._pending = 0

    def take(self, message: Msg) -> None:
        """Take one answer in."""
        headers = message.headers or {}
        status = headers.get(Header.STATUS)
        if self.page.done():
            return
        if status is None:
            self._pending = int(headers.get(_PENDING, 0))
            self._messages.append(_message(message))
        elif status in (_END, _NOTHING_MORE):
            self.page.set_result(StreamPage(tuple(self._messages), self._pending))
        elif status == _NO_RESPONDERS:
            self.page.set_exception(nats.errors.NoRespondersError())
        else:
            self.page.set_exception(NoSuchMessage(code=int(status), description=headers.get("Description", "")))
