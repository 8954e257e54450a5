"""Reading streams a page at a time, however much they hold.

nats-py lists the subjects of a stream only as far as the server's first page, and reads messages one by one. What changes while
it is listed is read by sequence (`next_messages`): pages by position skip what moves up when something before it is removed.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from datetime import timedelta
from typing import Any

from nats.aio.client import Client
from nats.js.errors import APIError
from pydantic_core import from_json, to_json

from ioa.adapters.nats.direct_gets import StreamMessage, StreamPage, read_stream
from ioa.adapters.nats.translated_errors import unavailable_unless_answered
from ioa.protocol.stream_reads import ReadStream

_TIMEOUT = timedelta(seconds=10)


async def next_messages(
    client: Client, stream: str, subject: str, *, after: int, limit: int, max_bytes: int | None = None
) -> StreamPage:
    """Read up to `limit` messages behind a sequence, on a subject that may hold wildcards, by one request (NATS ADR-31).

    With `max_bytes` the last message is the one that reaches it.

    Any replica of the stream answers, so what was stored a moment ago may be missing. The stream must allow direct access.

    Raises:
        UnavailableError: The stream cannot be read now.
    """
    return await read_stream(client, stream, ReadStream(seq=after + 1, next_by_subj=subject, batch=limit, max_bytes=max_bytes))


async def last_messages(client: Client, stream: str, subjects: Sequence[str], *, up_to: int) -> Sequence[StreamMessage]:
    """Read the last message of each subject up to a sequence that the stream has; 1,000 subjects at the most.

    Any replica answers, as in `next_messages`; one that has not come as far as the sequence has nothing. One request, if the
    messages are not too many bytes for one.

    Raises:
        UnavailableError: The stream cannot be read now.
    """
    found, left = list[StreamMessage](), tuple(subjects)
    while left:
        page = await read_stream(client, stream, ReadStream(multi_last=left, up_to_seq=up_to))
        found += page.messages
        known = {one.subject for one in page.messages}
        left = tuple([one for one in left if one not in known]) if page.pending and known else ()
    return found


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
    async for page in counts_of(client, stream, pattern):
        yield sorted(page)


async def counts_of(client: Client, stream: str, pattern: str) -> AsyncIterator[Mapping[str, int]]:
    """Count the messages of each subject of a stream that matches a pattern, as `subjects_of` lists them.

    Raises:
        UnavailableError: The stream cannot be asked now.
    """
    seen = 0
    while True:
        with unavailable_unless_answered(f"The stream {stream}"):
            answer = await ask(client, f"STREAM.INFO.{stream}", {"subjects_filter": pattern, "offset": seen})
        page: Mapping[str, int] = answer["state"].get("subjects") or {}
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
