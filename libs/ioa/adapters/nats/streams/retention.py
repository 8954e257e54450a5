"""Removal of goals and agents. Every removal can be repeated.

Removed keys leave no marker, except keys of cards, leases and sessions, which other processes follow.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime

import structlog
from nats.aio.client import Client
from nats.js.api import Header
from nats.js.errors import NotFoundError
from nats.js.kv import KV_OP, KV_PURGE

from ioa.adapters.nats.stores.goal_files import NatsFileStore
from ioa.adapters.nats.stores.goal_records import record_key
from ioa.adapters.nats.streams.stream import ALL, Stream
from ioa.adapters.nats.streams.topology import (
    CARDS,
    GOAL_RECORDS,
    LEASES,
    LOG,
    MEMBERS,
    OPEN,
    RESULTS,
    SESSIONS,
    TIMERS,
    WORK,
    pool_consumer,
    stream_of,
    subject_of,
)
from ioa.adapters.nats.wire.translated_errors import unavailable_unless_answered
from ioa.errors import IoaError
from ioa.group.events import Entry, SubgroupOpened, files_of
from ioa.protocol import subjects
from ioa.protocol.codec import decode
from ioa.protocol.goals import GoalRecord
from ioa.protocol.ids import AgentId, CommId, GoalName, PoolId

_MARKER = {KV_OP: KV_PURGE, Header.ROLLUP.value: "sub", Header.MSG_TTL.value: "3600"}
"""Headers of a marker, which shows a removal to followers for an hour. After a longer outage, a follower reads the whole bucket."""
_PAGE_ENTRIES = 32
"""Entries of a page. An entry may have a megabyte."""

_log = structlog.get_logger(__name__)


@dataclass(frozen=True)
class Belongings:
    """The nested groups and the names of file objects that a group's log contains."""

    nested: tuple[CommId, ...] = ()
    files: frozenset[str] = frozenset()


class NatsGoalRemoval:
    """Finds goals in the order of acceptance, and removes their data."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._files = NatsFileStore(client)

    async def oldest(self, *, after: int, limit: int) -> tuple[Sequence[GoalRecord], int | None]:
        """Read records after a number, without unreadable ones, and the number to continue from; None at the end."""
        page, records = await Stream(self._client, stream_of(GOAL_RECORDS)).page(ALL, after=after, limit=limit), []
        for message in page.messages:
            try:
                records.append(decode(GoalRecord, message.data))
            except IoaError as error:
                _log.warning("record_unreadable", subject=message.subject, seq=message.seq, error=error.message)
        return records, None if page.complete else page.messages[-1].seq

    async def belongings(self, comm_id: CommId) -> Belongings:
        """Read the log of a group. Unreadable entries contain nothing."""
        nested, files = dict[CommId, None](), set[str]()
        async for message in Stream(self._client, LOG).messages(subjects.log(comm_id), batch=_PAGE_ENTRIES):
            with suppress(IoaError):
                event = decode(Entry, message.data).event
                files.update(file.object_name for file in files_of(event))
                if isinstance(event, SubgroupOpened):
                    nested[event.subgroup] = None
        return Belongings(tuple(nested), frozenset(files))

    async def remove_file(self, object_name: str) -> None:
        """Remove a file."""
        await self._files.remove(object_name)

    async def remove_group(self, comm_id: CommId) -> None:
        """Remove a group's timers, including expired ones, its memberships, its entry in the open index, and last its log."""
        timer = subjects.timer(comm_id)
        await self._purge((TIMERS, f"{timer}.>"), (TIMERS, timer))
        await self._purge(*((stream_of(bucket), subject_of(bucket, f"*.{comm_id}")) for bucket in (MEMBERS, OPEN)))
        await self._purge((LOG, subjects.log(comm_id)))

    async def remove_goal(self, goal: GoalName) -> None:
        """Remove a goal's result, and then its record."""
        record = subject_of(GOAL_RECORDS, record_key(goal.comm_id, goal.user))
        await self._purge((RESULTS, subjects.result_of(goal)), (stream_of(GOAL_RECORDS), record))

    async def _purge(self, *removed: tuple[str, str]) -> None:
        for stream, subject in removed:
            await Stream(self._client, stream).purge(subject)


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
