"""Read messages of a stream by direct gets (NATS ADR-31): pages, single messages, and the first and last messages of subjects.

Direct gets do not wait in the queue of JetStream requests. Any replica of the stream answers, and may lag: a decision needs the
message of the stream's leader instead (`ioa.adapters.nats.streams.compare_and_set`). If the stream does not answer, all functions
raise `UnavailableError`.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

import nats.errors
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.js.api import Header
from nats.js.errors import APIError
from pydantic_core import to_json

from ioa.adapters.nats.auth.roles import READS
from ioa.adapters.nats.wire.connection import retry_without_responders, until_connected
from ioa.adapters.nats.wire.message_parser import SEQUENCE
from ioa.adapters.nats.wire.sinks import taking
from ioa.adapters.nats.wire.translated_errors import unavailable_unless_answered
from ioa.cancellation import fail_after
from ioa.page_size import count_page

ALL = ">"
"""Pattern of all subjects of a stream."""
_TIMEOUT_SECONDS = 10.0
_PAGE_BYTES = 2_000_000
"""Maximum bytes per reply: nats-server disconnects a client that leaves several MB unread."""
_NOTHING_MORE = "404"
_SUBJECT, _TIME, _PENDING = "Nats-Subject", "Nats-Time-Stamp", "Nats-Num-Pending"
_OF_NATS = "Nats-"
"""Prefix of the headers that NATS adds."""


@dataclass(frozen=True)
class StreamMessage:
    """A stored message, with the headers of its publisher, and the time when it was stored."""

    seq: int
    subject: str
    data: bytes
    headers: Mapping[str, str] = field(default_factory=dict)
    stored_at: datetime | None = None


@dataclass(frozen=True)
class StreamPage:
    """Messages by rising sequence, and how many of the requested messages follow them."""

    messages: tuple[StreamMessage, ...]
    pending: int

    @property
    def complete(self) -> bool:
        """Whether no requested message follows."""
        return self.pending == 0


@dataclass(frozen=True)
class PageBack:
    """Messages, newest first, and the sequence before which the next page ends; None if there are no older messages."""

    messages: Sequence[StreamMessage]
    before: int | None


async def message_at(client: Client, stream: str, seq: int) -> StreamMessage | None:
    """Read the message with a sequence; None if there is none."""
    return await _read_one(client, stream, seq=seq)


async def next_messages(
    client: Client, stream: str, subject: str, *, after: int, limit: int, max_bytes: int = _PAGE_BYTES
) -> StreamPage:
    """Read up to `limit` messages after a sequence, on a subject that may contain wildcards, by one request.

    The message that reaches `max_bytes` is the last.
    """
    return await _read_several(client, stream, seq=after + 1, next_by_subj=subject, batch=limit, max_bytes=max_bytes)


async def pages(client: Client, stream: str, subject: str, *, limit: int) -> AsyncIterator[StreamPage]:
    """Read all messages on a subject that may contain wildcards, a page at a time; see `next_messages`."""
    after, complete = 0, False
    while not complete:
        page = await next_messages(client, stream, subject, after=after, limit=limit)
        yield page
        after, complete = page.messages[-1].seq if page.messages else after, page.complete


async def latest_message(client: Client, stream: str, subject: str) -> StreamMessage | None:
    """Read the last message on a subject, which may contain wildcards; None if there is none."""
    return await _read_one(client, stream, last_by_subj=subject)


async def first_message(client: Client, stream: str, subject: str) -> StreamMessage | None:
    """Read the first message on a subject, which may contain wildcards; None if there is none."""
    return await _read_one(client, stream, seq=1, next_by_subj=subject)


async def last_sequence(client: Client, stream: str, subject: str = ALL) -> int:
    """Return the sequence of the last message on a subject that may contain wildcards; 0 if there is none."""
    last = await latest_message(client, stream, subject)
    if last is None and subject == ALL:  # the server finds none if the last message was removed; it examines all of a pattern
        last = await latest_message(client, stream, f"*.{ALL}")
    return 0 if last is None else last.seq


async def previous_messages(
    client: Client, stream: str, subject: str = ALL, *, before: int | None, limit: int, max_bytes: int = _PAGE_BYTES
) -> PageBack:
    """Read the last `limit` messages before the sequence `before`, on a subject that may contain wildcards, newest first.

    The message that reaches `max_bytes` is the last.

    JetStream has no request for that. Windows of sequences are read, each before the previous one. Their width follows from the
    share of the stream that is on the subject, and then from the number of messages in the window before.
    """
    oldest, last = await next_messages(client, stream, subject, after=0, limit=1), await last_sequence(client, stream, subject)
    if not oldest.messages:
        return PageBack((), None)
    first, end = oldest.messages[0].seq, last + 1
    width = max(1, limit * (end - first) // (1 + oldest.pending))
    end = end if before is None else min(before, end)
    found, size = list[StreamMessage](), 0
    while end > first and len(found) < limit and size < max_bytes:
        start = max(first, end - width)
        page = await next_messages(client, stream, subject, after=start - 1, limit=min(end - start, limit))
        reached = page.messages[-1].seq if page.messages else end
        if not page.complete and reached < end - 1:  # the window has more messages than the reply, and the last ones are needed
            width = reached - start + 1
            continue
        window = [message for message in page.messages if message.seq < end]
        found += reversed(window)
        size += sum(len(message.data) for message in window)
        end, width = start, width * 4 if len(window) * 4 < limit else width
    count = count_page((len(one.data) for one in found), max_bytes, limit)
    is_last = count == len(found) and end <= first
    return PageBack(found[:count], None if is_last or not count else found[count - 1].seq)


async def _read_one(client: Client, stream: str, **request: object) -> StreamMessage | None:
    """Send a request that has one message as its reply.

    Raises:
        UnavailableError: The stream does not answer.
    """
    data = to_json(request)
    with unavailable_unless_answered(f"The stream {stream}"):
        answer = await retry_without_responders(lambda: client.request(f"{READS}{stream}", data, timeout=_TIMEOUT_SECONDS))
        status = (answer.headers or {}).get(Header.STATUS)
        if status not in (None, _NOTHING_MORE):
            raise APIError(description=f"a direct get of {stream} was answered with {status}")
    return _message(answer) if status is None else None


async def _read_several(client: Client, stream: str, **request: object) -> StreamPage:
    """Send a request that has several messages as its reply.

    Raises:
        UnavailableError: The stream does not answer.
    """
    with unavailable_unless_answered(f"The stream {stream}"):
        return await retry_without_responders(lambda: _gather(client, stream, to_json(request)))


async def _gather(client: Client, stream: str, request: bytes) -> StreamPage:
    """Send a request and collect the messages of its reply until the end message."""
    found, pending, inbox = list[StreamMessage](), 0, client.new_inbox()
    page: asyncio.Future[StreamPage] = asyncio.get_running_loop().create_future()

    def take(message: Msg) -> None:
        nonlocal pending
        headers = message.headers or {}
        match headers.get(Header.STATUS):
            case _ if page.done():
                return
            case None:
                pending = int(headers.get(_PENDING, 0))
                found.append(_message(message))
            case "204" | "404":  # the end of the messages, or no message
                page.set_result(StreamPage(tuple(found), pending))
            case "503":
                page.set_exception(nats.errors.NoRespondersError())
            case status:
                page.set_exception(APIError(code=int(status), description=headers.get("Description", "")))

    async with taking(client, inbox, take), fail_after(_TIMEOUT_SECONDS):
        await until_connected(client)
        await client.publish(f"{READS}{stream}", request, reply=inbox)
        return await page


def _message(answer: Msg) -> StreamMessage:
    headers = answer.headers or {}
    own = {name: str(value) for name, value in headers.items() if not name.startswith(_OF_NATS)}  # non-ASCII values are objects
    stored_at = datetime.fromisoformat(headers[_TIME]) if _TIME in headers else None
    return StreamMessage(int(headers[SEQUENCE]), headers[_SUBJECT], answer.data, own, stored_at)
