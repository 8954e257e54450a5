"""How JetStream's streams and their shared consumers stand."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from nats.aio.client import Client
from nats.js import JetStreamContext
from nats.js.api import ConsumerInfo, DiscardPolicy, StreamInfo

from ioa.adapters.nats.streams.stream_names import ask
from ioa.adapters.nats.streams.topology import ARTIFACTS, CONSUMERS, DEAD, FILES, GOALS, LOG, OUTCOMES, RESULTS, TIMERS, WORK
from ioa.adapters.nats.wire.translated_errors import unavailable_unless_answered
from ioa.errors import UnavailableError
from ioa.ports.clock import Clock
from ioa.protocol import subjects
from ioa.protocol.standing import AskStoreStanding, QueueStanding, StoreStanding, StreamStanding

_QUEUES = (GOALS, WORK, TIMERS)
_STORES = (LOG, RESULTS, DEAD, OUTCOMES, f"OBJ_{FILES}", f"OBJ_{ARTIFACTS}")
_TOLD_FOR_SECONDS = 1.0
_MOST_QUEUES = 500
"""How many queues of a stream are told of, those in which most waits, so that the answer fits into a message."""
_PAGE = 256
"""How many consumers nats-server lists at once."""


@dataclass(frozen=True)
class QueueStats:
    """The state of a durable consumer.

    Attributes:
        waiting: Messages that no reader has taken.
        taken: Messages that a reader has taken and not acknowledged.
        again: Messages of `taken` that were delivered more than once.
        readers: Pulls that wait for a message; None if unknown.
        most_taken: Maximum of `taken`; 0 if unknown or unlimited.
    """

    name: str
    waiting: int
    taken: int
    again: int = 0
    readers: int | None = None
    most_taken: int = 0

    @property
    def is_unread(self) -> bool:
        """Whether messages wait and no reader asks for them."""
        return self.waiting > 0 and self.taken == 0 and self.readers == 0


@dataclass(frozen=True)
class StreamStats:
    """The content of a stream, its queues, and its maximum bytes; 0 is no maximum of its own."""

    name: str
    messages: int
    size_bytes: int
    queues: tuple[QueueStats, ...]
    limit_bytes: int = 0


class NatsStreamStats:
    """Ask the leaders of the streams."""

    def __init__(self, js: JetStreamContext) -> None:
        self._js = js

    async def read(self) -> Sequence[StreamStats]:
        """Ask for all streams, which whoever may see no subjects may too, and for the consumers of those that are queues.

        Raises:
            UnavailableError: JetStream does not answer, or without one of them.
        """
        with unavailable_unless_answered("JetStream"):
            found = {str(stream.config.name): stream for stream in await self._js.streams_info()}
        if missing := {*_QUEUES, *_STORES} - found.keys():
            raise UnavailableError(f"The stream {min(missing)} does not answer.")
        return [await self._stream(found[name]) for name in (*_QUEUES, *_STORES)]

    async def _stream(self, stream: StreamInfo) -> StreamStats:
        name, state = str(stream.config.name), stream.state
        with unavailable_unless_answered(f"The stream {name}"):
            queues = await self.queues(name) if name in _QUEUES else ()
        return StreamStats(name, state.messages, state.bytes, tuple(queues), _limit_of(stream))

    async def queues(self, stream: str) -> Sequence[QueueStats]:
        """Ask how the durable consumers of a stream stand; what JetStream or nats-py raise is raised."""
        found: list[ConsumerInfo] = []
        while True:
            page = await self._js.consumers_info(stream, offset=len(found))
            found += page
            if len(page) < _PAGE:
                return [_standing_of(one) for one in found]


class NatsStanding:
    """Tells those who may not ask JetStream how it stands; however many ask, it is asked once a second."""

    def __init__(self, client: Client, clock: Clock) -> None:
        self._client = client
        self._clock = clock
        self._lock = asyncio.Lock()
        self._read: StoreStanding | None = None
        self._read_at = float("-inf")

    async def tell(self, _asked: AskStoreStanding) -> StoreStanding:
        """Tell how it stood a second ago at most, dated now.

        Raises:
            UnavailableError: JetStream does not answer.
        """
        loop = asyncio.get_running_loop()
        async with self._lock:
            if self._read is None or loop.time() - self._read_at > _TOLD_FOR_SECONDS:
                self._read, self._read_at = await read_standing(self._client), loop.time()
            return self._read.model_copy(update={"at": self._clock.now()})


async def read_standing(client: Client) -> StoreStanding:
    """Ask JetStream how all of it stands, by some requests that the server answers in one line with all others.

    Raises:
        UnavailableError: It does not answer.
    """
    js, listed, dead = client.jetstream(), list[dict[str, Any]](), dict[str, int]()
    with unavailable_unless_answered("JetStream"):
        account = await js.account_info()
        while True:
            page = await ask(client, "STREAM.LIST", {"offset": len(listed)})
            listed += page["streams"] or ()
            if not page["streams"] or len(listed) >= page["total"]:
                break
        streams = [StreamInfo.from_response(one) for one in listed]
        there = {stream.config.name for stream in streams}
        queues = {name: await NatsStreamStats(js).queues(name) for name in _QUEUES if name in there}
        if DEAD in there:
            dead = (await js.stream_info(DEAD, subjects_filter=subjects.ANY_DEAD)).state.subjects or {}
    return StoreStanding(
        at=listed[0]["ts"] if listed else None,
        stored_bytes=account.storage,
        limit_bytes=max(0, account.limits.max_storage or 0),
        streams=tuple(_stream_of(stream, queues.get(str(stream.config.name), ())) for stream in streams),
        missing=tuple(_missing(queues)),
        dead_letters={subject.rpartition(".")[2]: number for subject, number in dead.items()},
    )


def _missing(queues: Mapping[str, Sequence[QueueStats]]) -> Iterator[str]:
    for stream, name, _ in CONSUMERS:
        if stream in queues and name not in {queue.name for queue in queues[stream]}:
            yield f"{stream}/{name}"


def _stream_of(stream: StreamInfo, queues: Sequence[QueueStats]) -> StreamStanding:
    busy = sorted((one for one in queues if one.waiting or one.taken), key=lambda one: -one.waiting)[:_MOST_QUEUES]
    return StreamStanding(
        name=str(stream.config.name),
        messages=stream.state.messages,
        stored_bytes=stream.state.bytes,
        limit_bytes=_limit_of(stream),
        schedules=bool(stream.config.allow_msg_schedules),
        queues=tuple(
            QueueStanding(
                name=one.name,
                waiting=one.waiting,
                taken=one.taken,
                again=one.again,
                readers=one.readers or 0,
                most_taken=one.most_taken,
            )
            for one in busy
        ),
    )


def _limit_of(stream: StreamInfo) -> int:
    """Return `max_bytes` of a stream that rejects messages when it is full; 0 for a stream that removes the oldest."""
    return max(0, stream.config.max_bytes or 0) if stream.config.discard is DiscardPolicy.NEW else 0


def _standing_of(one: ConsumerInfo) -> QueueStats:
    return QueueStats(
        one.name,
        one.num_pending or 0,
        one.num_ack_pending or 0,
        one.num_redelivered or 0,
        one.num_waiting or 0,
        max(0, one.config.max_ack_pending or 0),
    )
