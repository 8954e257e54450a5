"""Retention: what belongs to a goal goes together, some time after the goal's end, and its id and outcome stay.

The order makes every step repeatable. First it is written down how the goal ended (`EndedGoal`), so that nobody takes a goal
without a log for one that was never begun. The record goes last: while it is there, whoever looks through the records finds what is
left.
Any number of replicas may do this; one is enough.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

import structlog

from ioa.cancellation import TaskGroup
from ioa.errors import reason_of
from ioa.group.state import Ended, GroupState
from ioa.ports.clock import Clock
from ioa.ports.delivery import Results
from ioa.ports.group_log import GroupLog
from ioa.ports.retention import Belongings, EndedGoals, GoalPages, GoalRemoval
from ioa.protocol.goals import EndedGoal, GoalRecord, GoalResult, digest_of
from ioa.protocol.ids import CommId
from ioa.protocol.object_names import folder_of
from ioa.protocol.retention import Prune, Pruned
from ioa.runtime.goal_metrics import not_removed, removed
from ioa.telemetry import log_context

EVERY = timedelta(minutes=1)
UNPAID_FOR = timedelta(minutes=10)
"""How long a group that ended and has no result is left to the routers, which publish it from the log."""

FORGOTTEN_AFTER = timedelta(days=30)
"""How long after its deadline a goal without log and result counts as ended: nothing of the system takes so long to end one."""

_SHARE = 20
_PAGE_GOALS = 64
_AT_ONCE = 8
_UNKNOWN = "unknown"
_EVER = timedelta(days=365_000)
"""What is older than this is older than anything: behind it lies no time."""

_log = structlog.get_logger(__name__)


def ended_goal(record: GoalRecord, result: GoalResult | None, head: GroupState | None, now: datetime) -> EndedGoal | None:
    """Tell how a goal ended from what is left of it; None while it is open, or may be.

    Read it from the result, else from the log, else from the deadline.
    """
    goal = record.goal
    if result is not None:
        reason, at = result.reason, result.finished_at
    elif head is not None:
        if not isinstance(head.stage, Ended) or now < head.stage.ended_at + UNPAID_FOR:
            return None
        reason, at = head.stage.reason, head.stage.ended_at
    elif now < record.deadline + FORGOTTEN_AFTER:
        return None
    else:
        reason, at = None, record.deadline
    return EndedGoal(goal_id=goal.goal_id, user=goal.user, reason=reason, ended_at=at, digest=digest_of(goal.goal))


@dataclass(frozen=True)
class _Estate:
    """What belongs to a goal: its groups, the nested ones behind those they are nested in, and the files they have made."""

    groups: Mapping[CommId, Belongings]
    files: frozenset[str]


class Janitor:
    """Remove goals that ended long ago, all by itself and on request."""

    def __init__(
        self, pages: GoalPages, results: Results, log: GroupLog, ended: EndedGoals, removal: GoalRemoval, clock: Clock
    ) -> None:
        self._pages = pages
        self._results = results
        self._log = log
        self._ended = ended
        self._removal = removal
        self._clock = clock

    async def follow(self, keep: timedelta, every: timedelta = EVERY) -> None:
        """Remove what ended longer than `keep` ago, and look again `every` so often, for ever.

        It waits after each page, so that it never takes more than a twentieth of the time.
        """
        loop = asyncio.get_running_loop()
        while True:
            after: int | None = 0
            while after is not None:
                started = loop.time()
                try:
                    done = await self.prune(Prune(older_than=keep, after=after))
                except Exception as error:  # noqa: BLE001 - the sweep goes on after any error
                    _log.warning("retention_put_off", error=reason_of(error))
                    break
                after = done.after
                await asyncio.sleep(_SHARE * (loop.time() - started))
            await asyncio.sleep(every.total_seconds())

    async def prune(self, request: Prune) -> Pruned:
        """Remove, or count, what is old enough among the next few goals on record.

        Records are in the order of acceptance and no goal ends before it is accepted, so there is no more as soon as one was
        accepted too late. A goal that cannot be removed is told and left for the next time; it holds up no other.

        Raises:
            UnavailableError: The records cannot be read now.
        """
        page = await self._pages.oldest(after=request.after, limit=_PAGE_GOALS)
        until = self._clock.now() - min(request.older_than, _EVER)
        records = [one.record for one in page.records if one.record.accepted_at <= until]
        total = _Total()
        slots = asyncio.Semaphore(_AT_ONCE)

        async def one(record: GoalRecord) -> None:
            async with slots:
                await self._take(record, until, total, dry_run=request.dry_run)

        async with TaskGroup() as group:
            for record in records:
                group.create_task(one(record))
        is_last = len(records) < len(page.records)
        return Pruned(
            goals=dict(total.goals),
            groups=total.groups,
            files=total.files,
            failed=total.failed,
            after=None if is_last else page.next,
        )

    async def _take(self, record: GoalRecord, until: datetime, total: _Total, *, dry_run: bool) -> None:
        goal_id = record.goal.goal_id
        log_context.bind({"goal_id": goal_id, "comm_id": record.goal.comm_id, "traceparent": record.goal.traceparent})
        try:
            ended = await self._ending(record, until)
            if ended is None:
                return
            estate = await self._estate(record)
            if not dry_run:
                await self._remove(record, ended, estate)
        except Exception as error:  # noqa: BLE001 - one goal must not keep all others from being removed
            total.failed += 1
            not_removed.inc()
            message = reason_of(error)
            _log.warning("goal_not_removed", goal_id=goal_id, error=message)
            return
        total.add(ended, estate)

    async def _ending(self, record: GoalRecord, until: datetime) -> EndedGoal | None:
        """How the goal ended, if that is long enough ago or its removal has begun already."""
        goal = record.goal
        result, head = await self._results.get(goal.name), None
        if result is None:
            begun = await self._ended.find(goal.name)
            if begun is not None:
                return begun
            head = await self._log.last(goal.comm_id)
        ended = ended_goal(record, result, head.entry.state if head else None, self._clock.now())
        return ended if ended is not None and ended.ended_at <= until else None

    async def _estate(self, record: GoalRecord) -> _Estate:
        root = record.goal.comm_id
        groups: dict[CommId, Belongings] = {}
        files = {artifact.object_name for artifact in record.goal.inputs}
        waiting = [root]
        while waiting:
            comm_id = waiting.pop(0)
            groups[comm_id] = found = await self._removal.belongings(comm_id)
            waiting += [nested for nested in found.nested if nested not in groups and nested not in waiting]
            files |= found.files
        # A goal may be given files of another one, which go with that one.
        owners = {record.goal.name.key, *groups}
        folders = {f"{folder_of(owner)}/" for owner in owners}
        return _Estate(groups, frozenset(name for name in files if name[: name.find("/") + 1] in folders))

    async def _remove(self, record: GoalRecord, ended: EndedGoal, estate: _Estate) -> None:
        removal, goal = self._removal, record.goal
        await self._ended.put(ended)
        for object_name in sorted(estate.files):
            await removal.remove_file(object_name)
        for comm_id in reversed(list(estate.groups)):  # a nested team is known by its parent's log, so it goes first
            await removal.remove_timers(comm_id)
            await removal.remove_memberships(comm_id)
            await removal.remove_from_open(comm_id)
            await removal.remove_log(comm_id)
        await removal.remove_result(goal.name)
        await removal.remove_record(goal.comm_id)
        removed.inc()
        _log.info("goal_removed", goal_id=goal.goal_id, reason=ended.reason, ended_at=ended.ended_at.isoformat())


class _Total:
    """What went, of one page."""

    def __init__(self) -> None:
        self.goals: Counter[str] = Counter()
        self.groups = 0
        self.files = 0
        self.failed = 0

    def add(self, ended: EndedGoal, estate: _Estate) -> None:
        """Count a goal."""
        self.goals[ended.reason or _UNKNOWN] += 1
        self.groups += len(estate.groups)
        self.files += len(estate.files)
