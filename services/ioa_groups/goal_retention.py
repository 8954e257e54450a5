"""Retention: removes everything that belongs to a goal some time after its end, except its id and outcome.

The order makes each step repeatable. The outcome (`EndedGoal`) is written first, so that a goal without a log is not taken for a
new goal. The record is removed last, because the sweep finds goals by their records. Any number of replicas may run this.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence
from datetime import datetime, timedelta

import structlog

from ioa.errors import reason_of
from ioa.group.state import Ended
from ioa.protocol.goals import EndedGoal, GoalRecord
from ioa.protocol.ids import CommId
from ioa.protocol.operation.status import Prune, Pruned
from ioa.protocol.setup.file_requests import folder_of
from ioa.telemetry import log_context
from ioa_groups.group_ports import GroupServicePorts

EVERY = timedelta(minutes=1)
RESULT_WITHIN = timedelta(minutes=10)
"""Time in which routers publish the missing result of an ended group from its log."""

ENDED_WITHIN = timedelta(days=30)
"""Time after its deadline at which a goal without log and result counts as ended."""

_PAUSE_FACTOR = 20
_PAGE_GOALS = 16
_MAX_AGE = timedelta(days=365_000)
"""Maximum age, so that the subtraction from the present time cannot overflow."""

_log = structlog.get_logger(__name__)


class GoalRetention:
    """Remove goals that ended long ago, periodically and on request."""

    def __init__(self, ports: GroupServicePorts) -> None:
        self._ports = ports

    async def follow(self, keep: timedelta, every: timedelta = EVERY) -> None:
        """Remove goals that ended longer than `keep` ago, once every `every`, until cancelled.

        A pause after each page limits the work to a twentieth of the time.
        """
        loop = asyncio.get_running_loop()
        while True:
            after: int | None = 0
            while after is not None:
                started = loop.time()
                try:
                    after = (await self.prune(Prune(older_than=keep, after=after))).after
                except Exception as error:  # noqa: BLE001 - the sweep goes on after any error
                    _log.warning("retention_delayed", error=reason_of(error))
                    break
                await asyncio.sleep(_PAUSE_FACTOR * (loop.time() - started))
            await asyncio.sleep(every.total_seconds())

    async def prune(self, request: Prune) -> Pruned:
        """Remove, or count, the old goals of the next page of records.

        Records are in the order of acceptance, and a goal ends after its acceptance, so the first record that is too new ends the
        sweep. A goal that cannot be removed is logged and retried at the next sweep.

        Raises:
            UnavailableError: The records do not answer.
        """
        page, following = await self._ports.goals.oldest(after=request.after, limit=_PAGE_GOALS)
        until = self._ports.clock.now() - min(request.older_than, _MAX_AGE)
        goals, groups, files, failed = Counter[str](), 0, 0, 0
        for record in page:
            if record.accepted_at > until:
                following = None
                break
            goal = record.goal
            log_context.bind({"goal_id": goal.goal_id, "comm_id": goal.comm_id, "traceparent": goal.traceparent})
            try:
                ended = await self._find_end(record, until)
                if ended is None:
                    continue
                of_goal, stored = await self._data_of(record)
                if not request.dry_run:
                    await self._remove(ended, of_goal, stored)
            except Exception as error:  # noqa: BLE001 - one goal must not stop the removal of others
                failed += 1
                _log.warning("goal_not_removed", goal_id=goal.goal_id, error=reason_of(error))
            else:
                goals[ended.reason or "unknown"] += 1
                groups, files = groups + len(of_goal), files + len(stored)
        return Pruned(goals=dict(goals), groups=groups, files=files, failed=failed, after=following)

    async def _find_end(self, record: GoalRecord, until: datetime) -> EndedGoal | None:
        """Return how a goal ended, from its result, log or deadline, if it ended before `until` or its removal has begun."""
        goal, now = record.goal, self._ports.clock.now()
        if (result := await self._ports.results.get(goal.name)) is not None:
            reason, at = result.reason, result.finished_at
        elif (begun := await self._ports.ended.find(goal.name)) is not None:
            return begun
        elif (head := await self._ports.log.last(goal.comm_id)) is not None:
            stage = head.entry.state.stage
            if not isinstance(stage, Ended) or now < stage.ended_at + RESULT_WITHIN:
                return None
            reason, at = stage.reason, stage.ended_at
        elif now < record.deadline + ENDED_WITHIN:
            return None
        else:
            reason, at = None, record.deadline
        ended = EndedGoal(goal_id=goal.goal_id, user=goal.user, reason=reason, ended_at=at)
        return ended if at <= until else None

    async def _data_of(self, record: GoalRecord) -> tuple[Sequence[CommId], Sequence[str]]:
        """Return the groups of a goal, each parent before its nested groups, and its files."""
        groups, files = [record.goal.comm_id], {artifact.object_name for artifact in record.goal.inputs}
        for comm_id in groups:  # which grows by the nested groups
            nested, named = await self._ports.log.belongings(comm_id)
            groups += [one for one in dict.fromkeys(nested) if one not in groups]
            files |= named
        # The inputs of a goal may be files of another goal, which are removed with that goal.
        folders = {folder_of(owner) for owner in (record.goal.name.key, *groups)}
        return groups, sorted(name for name in files if name.partition("/")[0] in folders)

    async def _remove(self, ended: EndedGoal, groups: Sequence[CommId], files: Sequence[str]) -> None:
        await self._ports.ended.put(ended)
        for object_name in files:
            await self._ports.files.remove(object_name)
        for comm_id in reversed(groups):  # the parent's log names its nested groups, so it is removed after them
            await self._ports.timers.remove(comm_id)
            await self._ports.memberships.remove_group(comm_id)
            await self._ports.open_groups.remove(comm_id)
            await self._ports.log.remove(comm_id)
        await self._ports.results.remove(ended.name)
        await self._ports.goals.remove(ended.name)
        _log.info("goal_removed", goal_id=ended.goal_id, reason=ended.reason, ended_at=ended.ended_at.isoformat())
