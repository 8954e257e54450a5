"""Reads of streams by direct gets (NATS ADR-31): single messages, pages forwards and backwards, the last message of many subjects.

Direct gets do not wait in the queue of JetStream requests. Any replica of the stream answers, and may lag: a decision needs the
message of the stream's leader instead (`ioa.adapters.nats.streams.compare_and_set`).
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial

import nats.errors
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.js.api import Header
from nats.js.errors import APIError
from nats.js.errors import NotFoundError as NoSuchMessage
from pydantic_core import to_json

from ioa.adapters.nats.auth.roles import READS
from ioa.adapters.nats.wire.connection import retry_without_responders, until_connected
from ioa.adapters.nats.wire.message_parser import SEQUENCE
from ioa.adapters.nats.wire.sinks import taking
from ioa.adapters.nats.wire.translated_errors import unavailable_unless_answered
from ioa.beside import together
from ioa.cancellation import fail_after
from ioa.page_size import count_page

MAX_SUBJECTS = 1_000
"""Maximum subjects whose last messages one request returns."""
_TIMEOUT = timedelta(seconds=10)
_MAX_CONCURRENT = 64
_ALL = "*.>"
"""Pattern of every subject of the streams."""
_PAGE_MESSAGES, _PAGE_BYTES = 512, 2_000_000
"""Maximum messages and bytes of one reply: nats-server disconnects a client that leaves several MB unread."""
_END, _NOTHING_MORE, _NO_RESPONDERS = "204", "404", "503"
_SUBJECT, _TIME, _PENDING = "Nats-Subject", "Nats-Time-Stamp", "Nats-Num-Pending"
_OF_NATS = "Nats-"
"""Prefix of the headers that NATS adds."""


@dataclass(frozen=True)
class StreamMessage:
    """A stored message, with the headers of its publisher."""

    seq: int
    subject: str
    data: bytes
    headers: Mapping[str, str] = field(default_factory=dict)
    stored: str = ""
    """When it was stored, as the server writes it (RFC 3339)."""

    @property
    def stored_at(self) -> datetime | None:
        """When it was stored."""
        return datetime.fromisoformat(self.stored) if self.stored else None


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
    """Read the message with a sequence; None if there is none.

    Raises:
        UnavailableError: The stream does not answer.
    """
    return await _one(client, stream, {"seq": seq})


async def next_messages(
    client: Client, stream: str, subject: str, *, after: int, limit: int, max_bytes: int | None = None
) -> StreamPage:
    """Read up to `limit` messages after a sequence, on a subject that may contain wildcards, by one request.

    With `max_bytes`, the message that reaches this size is the last.

    Raises:
        UnavailableError: The stream does not answer.
    """
    asked = {"seq": after + 1, "next_by_subj": subject, "batch": limit, "max_bytes": max_bytes or _PAGE_BYTES}
    return await _several(client, stream, asked)


async def pages(client: Client, stream: str, subject: str, *, limit: int) -> AsyncIterator[StreamPage]:
    """Read all messages on a subject that may contain wildcards, a page at a time; see `next_messages`."""
    after, complete = 0, False
    while not complete:
        page = await next_messages(client, stream, subject, after=after, limit=limit)
        yield page
        after, complete = page.messages[-1].seq if page.messages else after, page.complete


async def last_messages(client: Client, stream: str, subjects: Sequence[str], *, up_to: int) -> Sequence[StreamMessage]:
    """Read the last message of each subject up to a sequence, at most `MAX_SUBJECTS` subjects.

    A replica that has not reached the sequence returns nothing.

    Raises:
        UnavailableError: The stream does not answer.
    """
    found, left = list[StreamMessage](), tuple(subjects)
    while left:
        page = await _several(client, stream, {"multi_last": left, "up_to_seq": up_to, "max_bytes": _PAGE_BYTES})
        found += page.messages
        known = {one.subject for one in page.messages}
        left = tuple([one for one in left if one not in known]) if page.pending and known else ()
    return found


async def latest_messages(client: Client, stream: str, subjects: Iterable[str]) -> Mapping[str, StreamMessage]:
    """Read the last message of each subject concurrently; a subject without messages is missing from the result.

    One request for each subject: for several at once the server searches the whole stream for messages far back.

    Raises:
        UnavailableError: The stream does not answer.
    """
    return await _each(client, stream, {subject: {"last_by_subj": subject} for subject in subjects})


async def first_messages(client: Client, stream: str, subjects: Iterable[str]) -> Mapping[str, StreamMessage]:
    """Read the first message of each subject concurrently; a subject without messages is missing from the result.

    Raises:
        UnavailableError: The stream does not answer.
    """
    return await _each(client, stream, {subject: {"seq": 1, "next_by_subj": subject} for subject in subjects})


async def sequence_range(client: Client, stream: str) -> tuple[int, int]:
    """Return the sequence of a stream's first message, and the sequence after its last message; equal if the stream is empty.

    Raises:
        UnavailableError: The stream does not answer.
    """
    first = await _one(client, stream, {"seq": 1, "next_by_subj": ">"})
    # For `>` the server finds no message if the last one was removed; for a pattern it examines all subjects.
    last = await _one(client, stream, {"last_by_subj": ">"}) or await _one(client, stream, {"last_by_subj": _ALL})
    return (first.seq, last.seq + 1) if first is not None and last is not None else (1, 1)


async def previous_messages(
    client: Client, stream: str, *, before: int | None, limit: int, max_bytes: int | None = None
) -> PageBack:
    """Read the last `limit` messages before the sequence `before`, or of the stream, newest first.

    With `max_bytes`, the message that reaches this size is the last.

    JetStream has no request for that. A window of sequences is read that ends where the previous window began. Its width follows
    from the number of messages in the window before it, since removed messages leave gaps.

    Raises:
        UnavailableError: The stream does not answer.
    """
    first_seq, end = await sequence_range(client, stream)
    end = end if before is None else min(before, end)
    found: list[StreamMessage] = []
    width, size = limit, 0
    while len(found) < limit and end > first_seq and (max_bytes is None or size < max_bytes):
        start = max(first_seq, end - width)
        page = await next_messages(client, stream, ">", after=start - 1, limit=min(end - start, _PAGE_MESSAGES))
        reached = page.complete or page.messages[-1].seq >= end - 1 or len(page.messages) == end - start
        if not reached:
            width = max(1, width // 4)  # the window contains more than one reply, and its end is needed
            continue
        window = [message for message in page.messages if message.seq < end]
        found += reversed(window)
        size += sum(len(message.data) for message in window)
        end, width = start, width * 4 if len(window) * 4 < limit else width
    page_back = found[: count_page((len(one.data) for one in found), max_bytes, limit)]
    is_last = len(page_back) == len(found) and end <= first_seq
    return PageBack(page_back, None if is_last or not page_back else page_back[-1].seq)


async def messages_before(client: Client, stream: str, subject: str, *, before: int, limit: int) -> Sequence[StreamMessage]:
    """Read the last messages of a subject before a sequence, in order: at least `limit`, or all.

    JetStream has no request for that either. With a message, the server returns how many messages of its subject follow. The place
    from which enough messages follow is found in few steps, since most logs grow evenly. Messages stored meanwhile count too: if
    they made too few look like enough, the messages before are searched again.

    Raises:
        UnavailableError: The stream does not answer.
    """

    async def count_from(seq: int) -> int:
        page = await next_messages(client, stream, subject, after=seq - 1, limit=1)
        return len(page.messages) + page.pending

    first, end = await sequence_range(client, stream)
    low, high = first, min(before, end)
    if high <= low:
        return []
    behind = high
    beyond = await count_from(high)
    many, few, evenly = await count_from(low) - beyond, 0, True
    while many > 2 * limit and high - low > 1:  # `many` from `low` on, which are enough, and `few` from `high` on, which are not
        share = (3 * limit // 2 - few) / (many - few) if evenly else 0.5
        middle = min(max(high - round((high - low) * share), low + 1), high - 1)
        count, evenly = await count_from(middle) - beyond, not evenly
        if count < limit:
            high, few = middle, count
        else:
            low, many = middle, count
    found, begin = list[StreamMessage](), low
    while many > 0 and low < behind:
        page = await next_messages(client, stream, subject, after=low - 1, limit=min(many, _PAGE_MESSAGES))
        found += page.messages
        many = min(many - len(page.messages), page.pending)
        low = found[-1].seq + 1 if found else low
    found = [message for message in found if message.seq < before]
    if len(found) < limit and begin > first:
        return [*await messages_before(client, stream, subject, before=begin, limit=limit - len(found)), *found]
    return found


async def _each(client: Client, stream: str, requests: Mapping[str, Mapping[str, object]]) -> Mapping[str, StreamMessage]:
    slots = asyncio.Semaphore(_MAX_CONCURRENT)

    async def one(request: Mapping[str, object]) -> StreamMessage | None:
        async with slots:
            return await _one(client, stream, request)

    answers = await together(*map(one, requests.values()))
    return {subject: answer for subject, answer in zip(requests, answers, strict=True) if answer is not None}


async def _one(client: Client, stream: str, request: Mapping[str, object]) -> StreamMessage | None:
    async def ask() -> Msg:
        return await client.request(f"{READS}{stream}", to_json(request), timeout=_TIMEOUT.total_seconds())

    with unavailable_unless_answered(f"The stream {stream}"):
        answer = await retry_without_responders(ask)
        status = (answer.headers or {}).get(Header.STATUS)
        if status not in (None, _NOTHING_MORE):
            raise APIError(description=f"a direct get of {stream} was answered with {status}")
    return _message(answer) if status is None else None


async def _several(client: Client, stream: str, request: Mapping[str, object]) -> StreamPage:
    with unavailable_unless_answered(f"The stream {stream}"):
        return await retry_without_responders(partial(_gather, client, stream, request))


async def _gather(client: Client, stream: str, request: Mapping[str, object]) -> StreamPage:
    batch, inbox = _Batch(), client.new_inbox()
    async with taking(client, inbox, batch.take), fail_after(_TIMEOUT.total_seconds()):
        await until_connected(client)
        await client.publish(f"{READS}{stream}", to_json(request), reply=inbox)
        return await batch.page


def _message(answer: Msg) -> StreamMessage:
    headers = answer.headers or {}
    own = {name: str(value) for name, value in headers.items() if not name.startswith(_OF_NATS)}  # non-ASCII values are objects
    return StreamMessage(int(headers[SEQUENCE]), headers[_SUBJECT], answer.data, own, headers.get(_TIME, ""))


class _Batch:
    """Collects the messages of a reply until the end message."""

    def __init__(self) -> None:
        self.page: asyncio.Future[StreamPage] = asyncio.get_running_loop().create_future()
        self._messages: list[StreamMessage] = []
        self._pending = 0

    def take(self, message: Msg) -> None:
        """Take one message."""
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
