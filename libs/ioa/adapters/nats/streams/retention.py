"""Removal of goals and agents, and what remains of a removed goal.

Every removal can be repeated. Removed keys leave no marker, except keys of cards, leases and sessions, which other processes
follow.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta

import structlog
from nats.aio.client import Client
from nats.js.errors import NotFoundError

from ioa.adapters.nats.stores.goal_files import NatsFileStore
from ioa.adapters.nats.stores.goal_records import record_key
from ioa.adapters.nats.stores.records import Records
from ioa.adapters.nats.streams.compare_and_set import last_message, stream_of, subject_of
from ioa.adapters.nats.streams.stream_reader import ALL, next_messages, pages
from ioa.adapters.nats.streams.topology import (
    CARDS,
    ENDED,
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
)
from ioa.adapters.nats.wire.translated_errors import unavailable_unless_answered
from ioa.errors import IoaError
from ioa.group.events import Entry, SubgroupOpened, files_of
from ioa.protocol import subjects
from ioa.protocol.codec import decode
from ioa.protocol.goals import EndedGoal, GoalRecord
from ioa.protocol.ids import AgentId, CommId, GoalName, PoolId

_MARKER_TTL = timedelta(hours=1)
"""Time for which a marker shows a removal to followers. A follower that was away for longer reads the whole bucket again."""
_PAGE_ENTRIES = 32
"""Entries of a page. An entry may have a megabyte."""

_log = structlog.get_logger(__name__)


@dataclass(frozen=True)
class Belongings:
    """The nested groups and the names of file objects that a group's log contains."""

    nested: tuple[CommId, ...] = ()
    files: frozenset[str] = frozenset()


class NatsEndedGoals:
    """The bucket `IOA_ENDED`, keyed by the goal's root group."""

    def __init__(self, client: Client) -> None:
        self._records = Records(client, ENDED, EndedGoal)

    async def put(self, ended: EndedGoal) -> None:
        """Store how a goal ended, unless it is stored."""
        await self._records.put_onto(ended.name.comm_id, ended)

    async def find(self, goal: GoalName) -> EndedGoal | None:
        """Read from the leader how a goal ended."""
        return await self._records.find(goal.comm_id)


class NatsGoalRemoval:
    """Finds goals in the order of acceptance, and removes their data."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._js = client.jetstream()
        self._files = NatsFileStore(client)

    async def oldest(self, *, after: int, limit: int) -> tuple[Sequence[GoalRecord], int | None]:
        """Read records after a number, without unreadable ones, and the number to continue from; None at the end."""
        page, records = await next_messages(self._client, stream_of(GOAL_RECORDS), ALL, after=after, limit=limit), []
        for message in page.messages:
            try:
                records.append(decode(GoalRecord, message.data))
            except IoaError as error:
                _log.warning("record_unreadable", subject=message.subject, seq=message.seq, error=error.message)
        return records, None if page.complete else page.messages[-1].seq

    async def belongings(self, comm_id: CommId) -> Belongings:
        """Read the log of a group. Unreadable entries contain nothing."""
        nested, files = dict[CommId, None](), set[str]()
        async for page in pages(self._client, LOG, subjects.log(comm_id), limit=_PAGE_ENTRIES):
            for message in page.messages:
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
        await self._purge(TIMERS, f"{subjects.timer(comm_id)}.>")
        await self._purge(TIMERS, subjects.timer(comm_id))
        await self._purge(stream_of(MEMBERS), subject_of(MEMBERS, f"*.{comm_id}"))
        await self._purge(stream_of(OPEN), subject_of(OPEN, f"*.{comm_id}"))
        await self._purge(LOG, subjects.log(comm_id))

    async def remove_goal(self, goal: GoalName) -> None:
        """Remove a goal's result, and then its record."""
        await self._purge(RESULTS, subjects.result_of(goal))
        await self._purge(stream_of(GOAL_RECORDS), subject_of(GOAL_RECORDS, record_key(goal.comm_id, goal.user)))

    async def _purge(self, stream: str, subject: str) -> None:
        with unavailable_unless_answered(f"The stream {stream}"):
            await self._js.purge_stream(stream, subject=subject)


class NatsAgentRemoval:
    """Removes keys of the registry's buckets, and durable consumers of `IOA_WORK`."""

    def __init__(self, client: Client) -> None:
        self._js = client.jetstream()

    async def last_renewal(self, agent_id: AgentId) -> datetime | None:
        """Return when the agent last renewed its lease."""
        with unavailable_unless_answered("The store of leases"):
            message = await last_message(self._js, stream_of(LEASES), subject_of(LEASES, agent_id))
        return None if message is None else message.time

    async def remove_agent(self, agent_id: AgentId) -> None:
        """Remove the keys, the card last, so that an interrupted removal is repeated."""
        with unavailable_unless_answered("The store of agents"):
            for bucket in (LEASES, SESSIONS, CARDS):
                await (await self._js.key_value(bucket)).purge(agent_id, msg_ttl=_MARKER_TTL.total_seconds())

    async def remove_queue(self, pool: PoolId) -> bool:
        """Delete the consumer if no goal waits; return whether it is gone.

        The stream counts a goal from its acknowledgement to the publisher until its end; the consumer counts it a moment later.
        """
        queue = subjects.work_of(pool)
        with unavailable_unless_answered("The queue of goals"):
            if (await self._js.stream_info(WORK, subjects_filter=queue)).state.subjects:
                return False
            with suppress(NotFoundError):
                await self._js.delete_consumer(WORK, pool_consumer(pool))
        return True
