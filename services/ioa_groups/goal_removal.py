"""Removal of goals: their groups, results and records. Every removal can be repeated."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

import structlog

from ioa.adapters.nats.stores.goal_records import record_key
from ioa.adapters.nats.streams.stream import ALL, Stream
from ioa.adapters.nats.streams.topology import GOAL_RECORDS, LOG, MEMBERS, OPEN, RESULTS, TIMERS, stream_of, subject_of
from ioa.adapters.nats.wire.connection import Connection
from ioa.errors import IoaError
from ioa.group.events import Entry, SubgroupOpened, files_of
from ioa.protocol import subjects
from ioa.protocol.codec import decode
from ioa.protocol.goals import GoalRecord
from ioa.protocol.ids import CommId, GoalName

_PAGE_ENTRIES = 32
"""Entries of a page. An entry may have a megabyte."""

_log = structlog.get_logger(__name__)


class NatsGoalRemoval:
    """Finds goals in the order of acceptance, and removes their data."""

    def __init__(self, client: Connection) -> None:
        self._client = client

    async def oldest(self, *, after: int, limit: int) -> tuple[Sequence[GoalRecord], int | None]:
        """Read records after a number, without unreadable ones, and the number to continue from; None at the end."""
        page, records = await Stream(self._client, stream_of(GOAL_RECORDS)).page(ALL, after=after, limit=limit), []
        for message in page.messages:
            try:
                records.append(decode(GoalRecord, message.data))
            except IoaError as error:
                _log.warning("record_unreadable", subject=message.subject, seq=message.seq, error=error.message)
        return records, None if page.complete else page.messages[-1].seq

    async def belongings(self, comm_id: CommId) -> tuple[list[CommId], set[str]]:
        """Read from the log of a group its nested groups and the names of its files. Unreadable entries contain nothing."""
        nested, files = list[CommId](), set[str]()
        async for message in Stream(self._client, LOG).messages(subjects.log(comm_id), batch=_PAGE_ENTRIES):
            with suppress(IoaError):
                event = decode(Entry, message.data).event
                files.update(file.object_name for file in files_of(event))
                if isinstance(event, SubgroupOpened):
                    nested.append(event.subgroup)
        return nested, files

    async def remove_group(self, comm_id: CommId) -> None:
        """Remove a group's timers, including expired ones, its memberships, its entry in the open index, and last its log."""
        timer, key = subjects.timer(comm_id), f"*.{comm_id}"
        await self._purge((TIMERS, f"{timer}.>"), (TIMERS, timer))
        await self._purge(
            *((stream_of(bucket), subject_of(bucket, key)) for bucket in (MEMBERS, OPEN)), (LOG, subjects.log(comm_id))
        )

    async def remove_goal(self, goal: GoalName) -> None:
        """Remove a goal's result, and then its record."""
        record = subject_of(GOAL_RECORDS, record_key(goal.comm_id, goal.user))
        await self._purge((RESULTS, subjects.result_of(goal)), (stream_of(GOAL_RECORDS), record))

    async def _purge(self, *removed: tuple[str, str]) -> None:
        for stream, subject in removed:
            await Stream(self._client, stream).purge(subject)
