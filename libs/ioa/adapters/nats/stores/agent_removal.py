"""Removal of agents. Every removal can be repeated. Removed keys leave a marker for processes that follow the buckets."""

from __future__ import annotations

from contextlib import suppress
from datetime import datetime

from nats.aio.client import Client
from nats.js.api import Header
from nats.js.errors import NotFoundError
from nats.js.kv import KV_OP, KV_PURGE

from ioa.adapters.nats.streams.stream import Stream
from ioa.adapters.nats.streams.topology import CARDS, LEASES, SESSIONS, WORK, pool_consumer, stream_of, subject_of
from ioa.adapters.nats.wire.translated_errors import unavailable_unless_answered
from ioa.protocol import subjects
from ioa.protocol.ids import AgentId, PoolId

_MARKER = {KV_OP: KV_PURGE, Header.ROLLUP.value: "sub", Header.MSG_TTL.value: "3600"}
"""Headers of a marker, which shows a removal to followers for an hour. After a longer outage, a follower reads the whole bucket."""


class NatsAgentRemoval:
    """Removes keys of the registry's buckets, and durable consumers of `IOA_WORK`."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def last_renewal(self, agent_id: AgentId) -> datetime | None:
        """Return when the agent last renewed its lease."""
        message = await Stream(self._client, stream_of(LEASES)).last(subject_of(LEASES, agent_id))
        return None if message is None else message.stored_at

    async def remove_agent(self, agent_id: AgentId) -> None:
        """Remove the keys, the card last, so that an interrupted removal is repeated."""
        for bucket in (LEASES, SESSIONS, CARDS):
            await Stream(self._client, stream_of(bucket)).publish(subject_of(bucket, agent_id), b"", _MARKER)

    async def remove_queue(self, pool: PoolId) -> bool:
        """Delete the consumer if no goal waits; return whether it is gone.

        The stream counts a goal from its acknowledgement to the publisher until its end; the consumer counts it a moment later.
        """
        if await Stream(self._client, WORK).subject_counts(subjects.work_of(pool)):
            return False
        with unavailable_unless_answered("The queue of goals"), suppress(NotFoundError):
            await self._client.jetstream().delete_consumer(WORK, pool_consumer(pool))
        return True
