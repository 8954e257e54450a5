"""Reading streams past JetStream's queue of requests, by direct gets (NATS ADR-31): one by one, backwards, many subjects at once.

The server answers all other requests of `$JS.API` in one line, and drops that line as a whole when it grows long; so whoever is no
part of the control plane reads by direct gets alone. Any replica of the stream answers, which may lag behind the leader: what
decides something is read from the leader instead.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta

from nats.aio.client import Client
from nats.js import JetStreamContext
from nats.js.api import RawStreamMsg
from nats.js.errors import NotFoundError

from ioa.adapters.nats.direct_gets import StreamMessage, read_stream
from ioa.adapters.nats.streams import next_messages
from ioa.adapters.nats.translated_errors import unavailable_unless_answered
from ioa.beside import together
from ioa.page_size import count_page
from ioa.protocol.stream_reads import ReadStream

_TIMEOUT = timedelta(seconds=5)
_AT_ONCE = 64
_ALL = "*.>"
"""Every subject that streams hold, as a pattern."""
_WIDEST, _WIDEST_BYTES = 512, 2_000_000
"""How much one request reads: what the server sends at once has to be taken up before it gives up on a slow reader."""


class DirectReads(JetStreamContext):
    """JetStream as users see it: each message is read past the line of requests."""

    async def get_msg(
        self,
        stream_name: str,
        seq: int | None = None,
        subject: str | None = None,
        direct: bool | None = True,  # noqa: ARG002
        next: bool | None = False,  # noqa: A002
    ) -> RawStreamMsg:
        """Read a message by its sequence, the last one of a subject, or with `next` the first one of it from a sequence on.

        Raises:
            NotFoundError: There is none.
            UnavailableError: The stream cannot be read now.
        """
        of_subject = subject if seq is not None and next else None
        request = ReadStream(seq=seq, next_by_subj=of_subject, last_by_subj=subject if seq is None else None)
        page = await read_stream(self._nc, stream_name, request, _TIMEOUT)
        if not page.messages:
            raise NotFoundError
        found = page.messages[0]
        return RawStreamMsg(
            subject=found.subject,
            seq=found.seq,
            data=found.data,
            headers=dict(found.headers),
            stream=stream_name,
            time=found.stored_at,
        )


@dataclass(frozen=True)
class PageBack:
    """Messages of a stream, newest first, and the sequence to go on from; None when there are no older ones."""

    messages: Sequence[StreamMessage]
    before: int | None


async def previous_messages(
    client: Client, stream: str, *, before: int | None, limit: int, max_bytes: int | None = None
) -> PageBack:
    """Read the last `limit` messages before the sequence `before`, or of the stream, newest first.

    With `max_bytes` there are fewer if they have more: the last one is the one that reaches it.

    There is no request for that. A window of sequences is read that ends where the last one began; its width follows from how
    much the one before it held, since sequences have gaps where messages were removed.

    Raises:
        UnavailableError: The stream does not answer.
    """
    first_seq, end = await ends_of(client, stream)
    end = end if before is None else min(before, end)
    found: list[StreamMessage] = []
    width, size = limit, 0
    while len(found) < limit and end > first_seq and (max_bytes is None or size < max_bytes):
        start = max(first_seq, end - width)
        page = await next_messages(client, stream, ">", after=start - 1, limit=min(end - start, _WIDEST))
        reached = page.complete or page.messages[-1].seq >= end - 1 or len(page.messages) == end - start
        if not reached:
            width = max(1, width // 4)  # the window holds more than is read at once, and its end is what counts
            continue
        window = [message for message in page.messages if message.seq < end]
        found += reversed(window)
        size += sum(len(message.data) for message in window)
        end, width = start, width * 4 if len(window) * 4 < limit else width
    page_back = found[: count_page((len(one.data) for one in found), max_bytes, limit)]
    is_last = len(page_back) == len(found) and end <= first_seq
    return PageBack(page_back, None if is_last or not page_back else page_back[-1].seq)


async def ends_of(client: Client, stream: str) -> tuple[int, int]:
    """Return the sequence of a stream's first message, and the one behind its last message; the same if there is none.

    Raises:
        UnavailableError: The stream does not answer.
    """
    js = DirectReads(client)
    with unavailable_unless_answered(f"The stream {stream}"):
        try:
            first, last = await js.get_msg(stream, seq=1, subject=">", next=True), await _newest(js, stream)
            return first.seq or 1, (last.seq or 0) + 1
        except NotFoundError:
            return 1, 1


async def _newest(js: DirectReads, stream: str) -> RawStreamMsg:
    """Read the last message. For `>` the server finds none where the one that came last was removed; for a pattern it walks all."""
    try:
        return await js.get_msg(stream, subject=">")
    except NotFoundError:
        return await js.get_msg(stream, subject=_ALL)


async def messages_before(client: Client, stream: str, subject: str, *, before: int, limit: int) -> Sequence[StreamMessage]:
    """Read the last messages of one subject before a sequence, in order: `limit` of them or some more, or all that there are.

    There is no request for that either. But with a message the server tells how many of its subject are behind it: so it is found
    from where on there are enough, in few steps, since most logs grow evenly. What is stored meanwhile is counted with them: where
    that made too few look like enough, those before them are looked for in turn.

    Raises:
        UnavailableError: The stream does not answer.
    """

    async def count_from(seq: int) -> int:
        page = await next_messages(client, stream, subject, after=seq - 1, limit=1)
        return len(page.messages) + page.pending

    first, end = await ends_of(client, stream)
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
        page = await next_messages(client, stream, subject, after=low - 1, limit=min(many, _WIDEST), max_bytes=_WIDEST_BYTES)
        found += page.messages
        many = min(many - len(page.messages), page.pending)
        low = found[-1].seq + 1 if found else low
    found = [message for message in found if message.seq < before]
    if len(found) < limit and begin > first:
        return [*await messages_before(client, stream, subject, before=begin, limit=limit - len(found)), *found]
    return found


async def last_of(client: Client, stream: str, subjects: Iterable[str]) -> Mapping[str, StreamMessage]:
    """Read the last message of each subject, side by side; subjects without one are left out.

    One request for each: the server answers one for many subjects too, but searches the whole stream for those that lie far back.

    Raises:
        UnavailableError: The stream does not answer.
    """
    return await _each(client, stream, {subject: ReadStream(last_by_subj=subject) for subject in subjects})


async def first_of(client: Client, stream: str, subjects: Iterable[str]) -> Mapping[str, StreamMessage]:
    """Read the first message of each subject, side by side; subjects without one are left out.

    Raises:
        UnavailableError: The stream does not answer.
    """
    return await _each(client, stream, {subject: ReadStream(seq=1, next_by_subj=subject) for subject in subjects})


async def _each(client: Client, stream: str, requests: Mapping[str, ReadStream]) -> Mapping[str, StreamMessage]:
    slots = asyncio.Semaphore(_AT_ONCE)

    async def one(request: ReadStream) -> Sequence[StreamMessage]:
        async with slots:
            return (await read_stream(client, stream, request, _TIMEOUT)).messages

    answers = await together(*map(one, requests.values()))
    return {subject: answer[0] for subject, answer in zip(requests, answers, strict=True) if answer}
