"""Reading streams a page at a time, however much they hold.

nats-py lists the subjects of a stream only as far as the server's first page, and reads messages one by one. What changes while
it is listed is read by sequence (`next_messages`): pages by position skip what moves up when something before it is removed.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import Any

import nats.errors
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.js.api import Header
from nats.js.errors import APIError, NotFoundError
from nats.js.kv import KV_OP
from pydantic_core import from_json, to_json

from ioa.adapters.nats.connection import asking_until_heard
from ioa.adapters.nats.sinks import MessageSink
from ioa.adapters.nats.translated_errors import unavailable_unless_answered

_TIMEOUT = timedelta(seconds=10)
_END, _NOTHING_MORE, _NO_RESPONDERS = "204", "404", "503"


@dataclass(frozen=True)
class StreamMessage:
    """A message of a stream. `is_marker` says that it stands for a key of a bucket that was deleted."""

    seq: int
    subject: str
    data: bytes
    is_marker: bool


@dataclass(frozen=True)
class StreamPage:
    """Messages in the order of their sequences, and how many of those that were asked for are behind the last one."""

    messages: tuple[StreamMessage, ...]
    pending: int

    @property
    def complete(self) -> bool:
        """Whether there was nothing behind the last one."""
        return self.pending == 0


async def next_messages(
    client: Client, stream: str, subject: str, *, after: int, limit: int, max_bytes: int | None = None
) -> StreamPage:
    """Read up to `limit` messages behind a sequence, on a subject that may hold wildcards, by one request (NATS ADR-31).

    With `max_bytes` the last message is the one that reaches it.

    Any replica of the stream answers, so what was stored a moment ago may be missing. The stream must allow direct access.

    Raises:
        UnavailableError: The stream cannot be read now.
    """
    asked = {"seq": after + 1, "next_by_subj": subject, "batch": limit}
    return await _direct_get(client, stream, asked if max_bytes is None else {**asked, "max_bytes": max_bytes})


async def last_messages(client: Client, stream: str, subjects: Sequence[str], *, up_to: int) -> StreamPage:
    """Read the last message of each subject up to a sequence that the stream has, by one request; 1,000 subjects at the most.

    Any replica answers, as in `next_messages`; one that has not come as far as the sequence has nothing.

    Raises:
        UnavailableError: The stream cannot be read now.
    """
    return await _direct_get(client, stream, {"multi_last": list(subjects), "up_to_seq": up_to})


async def _direct_get(client: Client, stream: str, asked: dict[str, object]) -> StreamPage:
    with unavailable_unless_answered(f"The stream {stream}"):
        return await asking_until_heard(partial(_direct_get_once, client, stream, to_json(asked)))


async def _direct_get_once(client: Client, stream: str, asked: bytes) -> StreamPage:
    batch, inbox = _Batch(), client.new_inbox()
    subscription = await client.subscribe(inbox, future=MessageSink(batch.take))
    try:
        await client.publish(f"$JS.API.DIRECT.GET.{stream}", asked, reply=inbox)
        async with asyncio.timeout(_TIMEOUT.total_seconds()):
            return await batch.page
    finally:
        if not client.is_closed:
            await subscription.unsubscribe()


async def pages(client: Client, stream: str, subject: str, *, limit: int) -> AsyncIterator[StreamPage]:
    """Read all messages on a subject that may hold wildcards, a page at a time; see `next_messages`."""
    after, complete = 0, False
    while not complete:
        page = await next_messages(client, stream, subject, after=after, limit=limit)
        yield page
        after, complete = page.messages[-1].seq if page.messages else after, page.complete


async def subjects_of(client: Client, stream: str, pattern: str) -> AsyncIterator[Sequence[str]]:
    """List the subjects of a stream that match a pattern, sorted, a page at a time as the server makes them (100,000 at most).

    What is removed meanwhile can make a page skip others: for what lives no longer than a listing use `next_messages`.

    Raises:
        UnavailableError: The stream cannot be asked now.
    """
    seen = 0
    while True:
        with unavailable_unless_answered(f"The stream {stream}"):
            answer = await ask(client, f"STREAM.INFO.{stream}", {"subjects_filter": pattern, "offset": seen})
        page = sorted(answer["state"].get("subjects") or ())
        if page:
            yield page
        seen += len(page)
        if not page or seen >= answer.get("total", 0):
            return


async def stream_names(client: Client) -> set[str]:
    """Ask JetStream which streams there are.

    Raises:
        UnavailableError: JetStream does not answer.
    """
    names: set[str] = set()
    while True:
        with unavailable_unless_answered("JetStream"):
            answer = await ask(client, "STREAM.NAMES", {"offset": len(names)})
        page = answer.get("streams") or ()
        names.update(page)
        if not page or len(names) >= answer.get("total", 0):
            return names


async def ask(client: Client, what: str, request: dict[str, object]) -> dict[str, Any]:
    """Ask JetStream itself (`$JS.API.…`) and return its answer.

    Raises:
        APIError: It refuses.
        nats.errors.Error: It does not answer, as `TimeoutError` too.
    """
    message = await client.request(f"$JS.API.{what}", to_json(request), timeout=_TIMEOUT.total_seconds())
    answer: dict[str, Any] = from_json(message.data)
    if "error" in answer:
        raise APIError.from_error(answer["error"])
    return answer


def direct_message(answer: Msg) -> StreamMessage:
    """Read a message of a stream off the answer to a direct get (NATS ADR-31)."""
    headers = answer.headers or {}
    return StreamMessage(int(headers["Nats-Sequence"]), headers["Nats-Subject"], answer.data, KV_OP in headers)


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
            self._pending = int(headers.get("Nats-Num-Pending", 0))
            self._messages.append(direct_message(message))
        elif status in (_END, _NOTHING_MORE):
            self.page.set_result(StreamPage(tuple(self._messages), self._pending))
        elif status == _NO_RESPONDERS:
            self.page.set_exception(nats.errors.NoRespondersError())
        else:
            self.page.set_exception(NotFoundError(code=int(status), description=headers.get("Description", "")))
