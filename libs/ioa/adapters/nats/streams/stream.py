"""One stream of JetStream: reads, conditional writes and removal.

The stream's leader answers `last` and `next`, on which decisions are based. Any replica, which may lag, answers all other reads by
direct gets (NATS ADR-31), which do not wait in the queue of JetStream requests.
"""

from __future__ import annotations

import asyncio
from base64 import b64decode
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import nats.errors
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.js.api import Header
from nats.js.errors import APIError, NotFoundError
from pydantic_core import from_json, to_json

from ioa.adapters.nats.streams.page_size import count_page
from ioa.adapters.nats.streams.topology import API, READS
from ioa.adapters.nats.wire.connection import retry_without_responders, until_connected
from ioa.adapters.nats.wire.message_parser import LAST_OF, SEQUENCE, read_headers
from ioa.adapters.nats.wire.subscriptions import taking
from ioa.adapters.nats.wire.translated_errors import lost_race, unavailable_unless_answered
from ioa.concurrency import fail_after

ALL = ">"
"""Pattern of all subjects of a stream."""
_TIMEOUT_SECONDS, _PAGE_TIMEOUT_SECONDS = 5.0, 10.0
_PAGE_BYTES = 2_000_000
"""Maximum bytes per reply: nats-server disconnects a client that leaves several MB unread."""
_BATCH = 256
_NO_MESSAGE = "404"
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

    messages: Sequence[StreamMessage]
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


async def ask_jetstream(client: Client, request: str, what: str = "JetStream", **content: object) -> dict[str, Any]:
    """Send a request to JetStream and return the reply; `what` names the stream in errors."""
    with unavailable_unless_answered(what):
        return _read_reply(await client.request(f"{API}.{request}", to_json(content), timeout=_TIMEOUT_SECONDS))


async def stream_names(client: Client) -> set[str]:
    """Return the names of all streams; see `ask_jetstream` for errors."""
    return {*((await ask_jetstream(client, "STREAM.NAMES")).get("streams") or ())}


class Stream:
    """A stream. Subjects of reads may contain wildcards.

    Every method raises `UnavailableError` if JetStream does not answer or rejects the request; a write may also raise
    `StoreFullError`, `TooManyMessagesError`, or `PayloadTooLargeError`.
    """

    def __init__(self, client: Client, name: str) -> None:
        self.client = client
        self.name = name
        self._what = f"The stream {name}"

    async def last(self, subject: str) -> StreamMessage | None:
        """Read the last message on a subject from the leader; None if there is none."""
        return await self._read_from_leader(last_by_subj=subject)

    async def next(self, subject: str, *, after: int) -> StreamMessage | None:
        """Read the first message after a sequence from the leader; None if there is none."""
        return await self._read_from_leader(seq=after + 1, next_by_subj=subject)

    async def contains(self, seq: int) -> bool:
        """Whether the leader has a message with this sequence."""
        return await self._read_from_leader(seq=seq) is not None

    async def _read_from_leader(self, **request: object) -> StreamMessage | None:
        with unavailable_unless_answered(self._what), suppress(NotFoundError):
            reply = await self.client.request(f"{API}.STREAM.MSG.GET.{self.name}", to_json(request), timeout=_TIMEOUT_SECONDS)
            found = _read_reply(reply)["message"]
            headers = read_headers(b64decode(found["hdrs"])) if "hdrs" in found else {}
            stored_at = datetime.fromisoformat(found["time"])
            return StreamMessage(found["seq"], found["subject"], b64decode(found.get("data", b"")), headers, stored_at)
        return None

    async def at(self, seq: int) -> StreamMessage | None:
        """Read the message with a sequence; None if there is none."""
        return await self._read_one(seq=seq)

    async def latest(self, subject: str) -> StreamMessage | None:
        """Read the last message on a subject; None if there is none."""
        return await self._read_one(last_by_subj=subject)

    async def first(self, subject: str) -> StreamMessage | None:
        """Read the first message on a subject; None if there is none."""
        return await self._read_one(seq=1, next_by_subj=subject)

    async def last_sequence(self, subject: str = ALL) -> int:
        """Return the sequence of the last message on a subject; 0 if there is none."""
        last = await self.latest(subject)
        if last is None and subject == ALL:  # the server finds none if the last message was removed; it examines all of a pattern
            last = await self.latest(f"*.{ALL}")
        return 0 if last is None else last.seq

    async def page(self, subject: str, *, after: int, limit: int, max_bytes: int = _PAGE_BYTES) -> StreamPage:
        """Read up to `limit` messages after a sequence by one request. The message that reaches `max_bytes` is the last."""
        request = to_json({"seq": after + 1, "next_by_subj": subject, "batch": limit, "max_bytes": max_bytes})
        with unavailable_unless_answered(self._what):
            return await retry_without_responders(lambda: self._gather(request))

    async def messages(self, subject: str, *, batch: int = _BATCH) -> AsyncIterator[StreamMessage]:
        """Read all messages on a subject, at most `batch` by one request."""
        after, complete = 0, False
        while not complete:
            page = await self.page(subject, after=after, limit=batch)
            for message in page.messages:
                yield message
            after, complete = page.messages[-1].seq if page.messages else after, page.complete

    async def page_back(self, subject: str = ALL, *, before: int | None, limit: int, max_bytes: int = _PAGE_BYTES) -> PageBack:
        """Read the last `limit` messages before a sequence, newest first. The message that reaches `max_bytes` is the last.

        JetStream has no request for that. Windows of sequences are read, each before the previous one. Their width follows from the
        share of the stream that is on the subject, and then from the number of messages in the window before.
        """
        oldest, last = await self.page(subject, after=0, limit=1), await self.last_sequence(subject)
        if not oldest.messages:
            return PageBack((), None)
        first, end = oldest.messages[0].seq, last + 1
        width = max(1, limit * (end - first) // (1 + oldest.pending))
        end = end if before is None else min(before, end)
        found, size = list[StreamMessage](), 0
        while end > first and len(found) < limit and size < max_bytes:
            start = max(first, end - width)
            page = await self.page(subject, after=start - 1, limit=min(end - start, limit))
            reached = page.messages[-1].seq if page.messages else end
            if not page.complete and reached < end - 1:  # the reply lacks the last messages of the window, which are needed
                width = reached - start + 1
                continue
            window = [message for message in page.messages if message.seq < end]
            found += reversed(window)
            size += sum(len(message.data) for message in window)
            end, width = start, width * 4 if len(window) * 4 < limit else width
        count = count_page((len(one.data) for one in found), max_bytes, limit)
        is_last = count == len(found) and end <= first
        return PageBack(found[:count], None if is_last or not count else found[count - 1].seq)

    async def _read_one(self, **request: object) -> StreamMessage | None:
        data = to_json(request)
        with unavailable_unless_answered(self._what):
            answer = await self.client.request(READS + self.name, data, timeout=_PAGE_TIMEOUT_SECONDS)
            status = (answer.headers or {}).get(Header.STATUS)
            if status not in (None, _NO_MESSAGE):
                raise APIError(description=f"a direct get was answered with {status}")
        return _read_message(answer) if status is None else None

    async def _gather(self, request: bytes) -> StreamPage:
        """Send a request and collect the messages of its reply until the end message."""
        found, pending, inbox = list[StreamMessage](), 0, self.client.new_inbox()
        page: asyncio.Future[StreamPage] = asyncio.get_running_loop().create_future()

        def take(message: Msg) -> None:
            nonlocal pending
            headers = message.headers or {}
            match headers.get(Header.STATUS):
                case _ if page.done():
                    return
                case None:
                    pending = int(headers.get(_PENDING, 0))
                    found.append(_read_message(message))
                case "204" | "404":  # the end of the messages, or no message
                    page.set_result(StreamPage(found, pending))
                case "503":
                    page.set_exception(nats.errors.NoRespondersError())
                case status:
                    page.set_exception(APIError(code=int(status), description=headers.get("Description", "")))

        async with taking(self.client, inbox, take), fail_after(_PAGE_TIMEOUT_SECONDS):
            await until_connected(self.client)
            await self.client.publish(READS + self.name, request, reply=inbox)
            return await page

    async def subject_counts(self, pattern: str = ALL) -> Mapping[str, int]:
        """Return the subjects that match a pattern, with the number of messages of each.

        nats-server lists 100,000 subjects in one reply. Subjects that are removed between two replies can hide others.
        """
        found = dict[str, int]()
        while True:
            info = await self.info(subjects_filter=pattern, offset=len(found))
            page: Mapping[str, int] = info["state"].get("subjects") or {}
            found |= page
            if not page or len(found) >= info.get("total", 0):
                return found

    async def info(self, **options: object) -> dict[str, Any]:
        """Return configuration and state, as the leader reports them."""
        return await self._ask("INFO", **options)

    async def publish(self, subject: str, data: bytes, headers: Mapping[str, str] | None = None) -> int:
        """Store a message; return its sequence, or the sequence of a stored message with the same message id."""
        with unavailable_unless_answered(self._what):
            return await self._write(subject, data, headers or {})

    async def publish_onto(
        self, subject: str, data: bytes, *, last: int = 0, last_of: str | None = None, headers: Mapping[str, str] | None = None
    ) -> int | None:
        """Store a message if the last message on the subject, or on `last_of`, has the sequence `last`; 0: there is none.

        Return the sequence of the new message; None if the last message differs.
        """
        expected = {Header.EXPECTED_LAST_SUBJECT_SEQUENCE.value: str(last)} | ({} if last_of is None else {LAST_OF: last_of})
        with unavailable_unless_answered(self._what):
            try:
                return await self._write(subject, data, {**(headers or {}), **expected})
            except APIError as error:
                if not lost_race(error):
                    raise
                return None

    async def _write(self, subject: str, data: bytes, headers: Mapping[str, str]) -> int:
        # nats-py's `publish` parses the reply into an object, which takes a quarter of the CPU time of an append.
        expected = {**headers, Header.EXPECTED_STREAM.value: self.name}
        reply = _read_reply(await self.client.request(subject, data, timeout=_TIMEOUT_SECONDS, headers=expected))
        return int(reply["seq"])

    async def purge(self, subject: str) -> None:
        """Remove all messages on a subject. Unlike in a key-value bucket, no deletion marker stays."""
        await self._ask("PURGE", filter=subject)

    async def remove(self, seq: int) -> None:
        """Remove the message with a sequence."""
        await self._ask("MSG.DELETE", seq=seq)

    async def _ask(self, verb: str, **content: object) -> dict[str, Any]:
        return await ask_jetstream(self.client, f"STREAM.{verb}.{self.name}", self._what, **content)


def _read_reply(message: Msg) -> dict[str, Any]:
    reply: dict[str, Any] = from_json(message.data)
    if "error" in reply:
        raise APIError.from_error(reply["error"])
    return reply


def _read_message(answer: Msg) -> StreamMessage:
    headers = answer.headers or {}
    own = {name: value for name, value in headers.items() if not name.startswith(_OF_NATS)}
    stored_at = datetime.fromisoformat(headers[_TIME]) if _TIME in headers else None
    return StreamMessage(int(headers[SEQUENCE]), headers[_SUBJECT], answer.data, own, stored_at)
