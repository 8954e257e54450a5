"""How JetStream's streams and their shared consumers stand."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from nats.aio.client import Client
from nats.js import JetStreamContext
from nats.js.api import ConsumerInfo, DiscardPolicy, StreamInfo

from ioa.adapters.nats.streams.stream_names import ask
from ioa.adapters.nats.streams.topology import CONSUMERS, DEAD, FILES, GOALS, LOG, OPEN, OUTCOMES, RESULTS, TIMERS, WORK
from ioa.adapters.nats.wire.translated_errors import unavailable_unless_answered
from ioa.errors import UnavailableError
from ioa.ports.clock import Clock
from ioa.protocol import subjects
from ioa.protocol.standing import AskStoreStanding, QueueStanding, StoreStanding, StreamStanding

_QUEUES = (GOALS, WORK, TIMERS)
_STORES = (LOG, RESULTS, DEAD, OUTCOMES, f"KV_{OPEN}", f"OBJ_{FILES}")
_TOLD_FOR_SECONDS = 1.0
_MOST_QUEUES = 500
"""How many queues of a stream are told of, those in which most waits, so that the answer fits into a message."""
_PAGE = 256
"""How many consumers nats-server lists at once."""


class NatsStreamStats:
    """Ask the leaders of the streams."""

    def __init__(self, js: JetStreamContext) -> None:
        self._js = js

    async def read(self) -> Sequence[StreamStanding]:
        """Ask for all streams, which whoever may see no subjects may too, and for the consumers of those that are queues.

        Raises:
            UnavailableError: JetStream does not answer, or without one of them.
        """
        with unavailable_unless_answered("JetStream"):
            found = {str(stream.config.name): stream for stream in await self._js.streams_info()}
        if missing := {*_QUEUES, *_STORES} - found.keys():
            raise UnavailableError(f"The stream {min(missing)} does not answer.")
        return [await self._stream(found[name]) for name in (*_QUEUES, *_STORES)]

    async def _stream(self, stream: StreamInfo) -> StreamStanding:
        name = str(stream.config.name)
        with unavailable_unless_answered(f"The stream {name}"):
            queues = await self.queues(name) if name in _QUEUES else ()
        return _stream_of(stream, queues)

    async def queues(self, stream: str) -> Sequence[QueueStanding]:
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
        streams=tuple(_stream_of(stream, _busiest(queues.get(str(stream.config.name), ()))) for stream in streams),
        missing=tuple(_missing(queues)),
        dead_letters={subject.rpartition(".")[2]: number for subject, number in dead.items()},
    )


def _missing(queues: Mapping[str, Sequence[QueueStanding]]) -> Iterator[str]:
    for stream, name, _ in CONSUMERS:
        if stream in queues and name not in {queue.name for queue in queues[stream]}:
            yield f"{stream}/{name}"


def _busiest(queues: Sequence[QueueStanding]) -> Sequence[QueueStanding]:
    busy = (one for one in queues if one.waiting or one.taken)
    return sorted(busy, key=lambda one: -one.waiting)[:_MOST_QUEUES]


def _stream_of(stream: StreamInfo, queues: Sequence[QueueStanding]) -> StreamStanding:
    return StreamStanding(
        name=str(stream.config.name),
        messages=stream.state.messages,
        stored_bytes=stream.state.bytes,
        limit_bytes=_limit_of(stream),
        schedules=bool(stream.config.allow_msg_schedules),
        queues=tuple(queues),
    )


def _limit_of(stream: StreamInfo) -> int:
    """Return `max_bytes` of a stream that rejects messages when it is full; 0 for a stream that removes the oldest."""
    return max(0, stream.config.max_bytes or 0) if stream.config.discard is DiscardPolicy.NEW else 0


def _standing_of(one: ConsumerInfo) -> QueueStanding:
    return QueueStanding(
        name=one.name,
        waiting=one.num_pending or 0,
        taken=one.num_ack_pending or 0,
        again=one.num_redelivered or 0,
        readers=one.num_waiting or 0,
        most_taken=max(0, one.config.max_ack_pending or 0),
    )
