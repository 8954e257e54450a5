"""How JetStream's streams and their shared consumers stand."""

from __future__ import annotations

from collections.abc import Sequence

from nats.js import JetStreamContext
from nats.js.api import ConsumerInfo

from ioa.adapters.nats.topology import DEAD, GOALS, LOG, OLD_GOALS, OUTCOMES, RESULTS, TIMERS, WORK
from ioa.adapters.nats.translated_errors import unavailable_unless_answered
from ioa.ports.stream_stats import QueueStats, StreamStats

_QUEUES = (OLD_GOALS, GOALS, WORK, TIMERS)
_STORES = (LOG, RESULTS, DEAD, OUTCOMES)
_PAGE = 256
"""How many consumers nats-server lists at once."""


class NatsStreamStats:
    """Ask the leaders of the streams."""

    def __init__(self, js: JetStreamContext) -> None:
        self._js = js

    async def read(self) -> Sequence[StreamStats]:
        """Ask for every stream, and for the consumers of those that are queues."""
        return [await self._stream(name) for name in (*_QUEUES, *_STORES)]

    async def _stream(self, name: str) -> StreamStats:
        with unavailable_unless_answered(f"The stream {name}"):
            state = (await self._js.stream_info(name)).state
            consumers = await self._consumers(name) if name in _QUEUES else ()
        queues = (_standing_of(one) for one in consumers)
        return StreamStats(name, state.messages, state.bytes, tuple(queues))

    async def _consumers(self, stream: str) -> Sequence[ConsumerInfo]:
        found: list[ConsumerInfo] = []
        while True:
            page = await self._js.consumers_info(stream, offset=len(found))
            found += page
            if len(page) < _PAGE:
                return found


def _standing_of(one: ConsumerInfo) -> QueueStats:
    return QueueStats(one.name, one.num_pending or 0, one.num_ack_pending or 0, one.num_redelivered or 0)
