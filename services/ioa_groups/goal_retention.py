"""Retention: removes everything that belongs to a goal some time after its end, except its id and outcome.

The order makes each step repeatable. The outcome (`EndedGoal`) is written first, so that a goal without a log is not taken for a
new goal. The record is removed last, because the sweep finds goals by their records. Any number of replicas may run this.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

import structlog
from prometheus_client import Counter as Metric

from ioa.adapters.nats.stores.goal_records import NatsEndedGoals
from ioa.adapters.nats.streams.retention import Belongings, NatsGoalRemoval
from ioa.cancellation import TaskGroup
from ioa.errors import reason_of
from ioa.group.state import Ended, GroupState
from ioa.ports.clock import Clock
from ioa.ports.delivery import Results
from ioa.ports.group_log import GroupLog
from ioa.protocol.goals import EndedGoal, GoalRecord, GoalResult, digest_of
from ioa.protocol.ids import CommId
from ioa.protocol.object_names import folder_of
from ioa.protocol.retention import Prune, Pruned
from ioa.telemetry import log_context

EVERY = timedelta(minutes=1)
RESULT_WITHIN = timedelta(minutes=10)
"""Time in which routers publish the missing result of an ended group from its log."""

ENDED_WITHIN = timedelta(days=30)
"""Time after its deadline at which a goal without log and result counts as ended."""

_PAUSE_FACTOR = 20
_PAGE_GOALS = 64
_CONCURRENT = 8
_UNKNOWN = "unknown"
_MAX_AGE = timedelta(days=365_000)
"""Maximum age, so that the subtraction from the present time cannot overflow."""

_log = structlog.get_logger(__name__)

removed = Metric("ioa_goals_removed_total", "Ended goals that were removed because they are old enough")
not_removed = Metric("ioa_goals_not_removed_total", "Failed attempts to remove an ended goal, which are repeated")


def ended_goal(record: GoalRecord, result: GoalResult | None, head: GroupState | None, now: datetime) -> EndedGoal | None:
    """Return how a goal ended, from its result, its log or its deadline; None while the goal may be open."""
    goal = record.goal
    if result is not None:
        reason, at = result.reason, result.finished_at
    elif head is not None:
        if not isinstance(head.stage, Ended) or now < head.stage.ended_at + RESULT_WITHIN:
            return None
        reason, at = head.stage.reason, head.stage.ended_at
    elif now < record.deadline + ENDED_WITHIN:
        return None
    else:
        reason, at = None, record.deadline
    return EndedGoal(goal_id=goal.goal_id, user=goal.user, reason=reason, ended_at=at, digest=digest_of(goal.goal))


@dataclass(frozen=True)
class _GoalData:
    """Data of a goal: its groups, each parent before its nested groups, and its files."""

    groups: Mapping[CommId, Belongings]
    files: frozenset[str]


class GoalRetention:
    """Remove goals that ended long ago, periodically and on request."""

    def __init__(self, results: Results, log: GroupLog, ended: NatsEndedGoals, removal: NatsGoalRemoval, clock: Clock) -> None:
        self._results = results
        self._log = log
        self._ended = ended
        self._removal = removal
        self._clock = clock

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
                    done = await self.prune(Prune(older_than=keep, after=after))
                except Exception as error:  # noqa: BLE001 - the sweep goes on after any error
                    _log.warning("retention_delayed", error=reason_of(error))
                    break
                after = done.after
                await asyncio.sleep(_PAUSE_FACTOR * (loop.time() - started))
            await asyncio.sleep(every.total_seconds())

    async def prune(self, request: Prune) -> Pruned:
        """Remove, or count, the old goals of the next page of records.

        Records are in the order of acceptance, and a goal ends after its acceptance, so the first record that is too new ends the
        sweep. A goal that cannot be removed is logged and retried at the next sweep.

        Raises:
            UnavailableError: The records do not answer.
        """
        page, following = await self._removal.oldest(after=request.after, limit=_PAGE_GOALS)
        until = self._clock.now() - min(request.older_than, _MAX_AGE)
        records = [one for one in page if one.accepted_at <= until]
        slots = asyncio.Semaphore(_CONCURRENT)

        async def remove(record: GoalRecord) -> Pruned:
            async with slots:
                return await self._remove_old(record, until, dry_run=request.dry_run)

        async with TaskGroup() as group:
            tasks = [group.create_task(remove(record)) for record in records]
        done = [task.result() for task in tasks]
        return Pruned(
            goals=dict(sum((Counter(one.goals) for one in done), Counter[str]())),
            groups=sum(one.groups for one in done),
            files=sum(one.files for one in done),
            failed=sum(one.failed for one in done),
            after=None if len(records) < len(page) else following,
        )

    async def _remove_old(self, record: GoalRecord, until: datetime, *, dry_run: bool) -> Pruned:
        goal_id = record.goal.goal_id
        log_context.bind({"goal_id": goal_id, "comm_id": record.goal.comm_id, "traceparent": record.goal.traceparent})
        try:
            ended = await self._ending(record, until)
            if ended is None:
                return Pruned()
            data = await self._data_of(record)
            if not dry_run:
                await self._remove(record, ended, data)
        except Exception as error:  # noqa: BLE001 - one goal must not stop the removal of others
            not_removed.inc()
            _log.warning("goal_not_removed", goal_id=goal_id, error=reason_of(error))
            return Pruned(failed=1)
        return Pruned(goals={ended.reason or _UNKNOWN: 1}, groups=len(data.groups), files=len(data.files))

    async def _ending(self, record: GoalRecord, until: datetime) -> EndedGoal | None:
        """Return how the goal ended, if it ended before `until` or its removal has begun."""
        goal = record.goal
        result, head = await self._results.get(goal.name), None
        if result is None:
            begun = await self._ended.find(goal.name)
            if begun is not None:
                return begun
            head = await self._log.last(goal.comm_id)
        ended = ended_goal(record, result, head.entry.state if head else None, self._clock.now())
        return ended if ended is not None and ended.ended_at <= until else None

    async def _data_of(self, record: GoalRecord) -> _GoalData:
        root = record.goal.comm_id
        groups: dict[CommId, Belongings] = {}
        files = {artifact.object_name for artifact in record.goal.inputs}
        waiting = [root]
        while waiting:
            comm_id = waiting.pop(0)
            groups[comm_id] = found = await self._removal.belongings(comm_id)
            waiting += [nested for nested in found.nested if nested not in groups and nested not in waiting]
            files |= found.files
        # The inputs of a goal may be files of another goal, which are removed with that goal.
        owners = {record.goal.name.key, *groups}
        folders = {f"{folder_of(owner)}/" for owner in owners}
        return _GoalData(groups, frozenset(name for name in files if name[: name.find("/") + 1] in folders))

    async def _remove(self, record: GoalRecord, ended: EndedGoal, data: _GoalData) -> None:
        removal, goal = self._removal, record.goal
        await self._ended.put(ended)
        for object_name in sorted(data.files):
            await removal.remove_file(object_name)
        for comm_id in reversed(list(data.groups)):  # the parent's log names its nested groups, so it is removed after them
            await removal.remove_group(comm_id)
        await removal.remove_goal(goal.name)
        removed.inc()
        _log.info("goal_removed", goal_id=goal.goal_id, reason=ended.reason, ended_at=ended.ended_at.isoformat())
