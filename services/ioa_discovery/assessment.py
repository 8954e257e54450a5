"""Learning how tasks went: the owner of a group tells when it has ended, and the group's log says how it went.

What counts is read off the log, which only routers and group setup can write; the owner says no more than that there is something
to be learnt.

All that one group says of a pool is one outcome. So nobody drives out what others said of it, of which only so much is remembered,
by giving it many tasks that come to nothing: each outcome costs a goal, and those of one owner's pool together are worth no more
than so many of different ones. Nor does anybody by tasks with deadlines that nobody could meet: they say nothing.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict, defaultdict
from collections.abc import Sequence
from datetime import timedelta

from prometheus_client import Counter

from ioa.adapters.nats.sessions import NatsSessions
from ioa.errors import ConflictError, ForbiddenError
from ioa.group.requests import no_group
from ioa.group.state import GroupState
from ioa.ports.clock import Clock
from ioa.ports.group_log import GroupLog
from ioa.ports.outcome_store import OutcomeStore
from ioa.ports.registry_view import RegistryView
from ioa.protocol.ids import CommId, PoolId
from ioa.protocol.messages import TaskOutcome
from ioa.protocol.outcomes import Outcome, ReportOutcomes, name_of_pool
from ioa.protocol.registry import Acknowledged
from ioa_discovery.ended_tasks import EndedTask, EndedTasks
from ioa_discovery.experience import Experience

_LEAST_PATIENCE = timedelta(seconds=1)
"""A task that had less time says nothing of who could not do it."""
_READ_ENTRIES, _READ_BYTES = 1_000, 8_000_000
"""How much of a log is read, an eighth of what a group may fill; tasks that ended behind it say nothing."""
_PAGE_ENTRIES, _PAGE_BYTES = 64, 500_000
"""How much of it is held at a time: decoded, it takes ten times as much."""
_REMEMBERED_GROUPS = 10_000
"""The last groups that were read. None is read twice, since reading one costs more than asking for it."""

outcomes_kept = Counter(
    "ioa_discovery_outcomes_total",
    "Outcomes that owners of groups told and the log confirmed, one of a group for each pool; told again it counts again",
    ["outcome"],
)
_counts = {done: outcomes_kept.labels(TaskOutcome.DONE if done else TaskOutcome.FAILED) for done in (True, False)}


class Assessor:
    """Answer the requests of `ioa.v1.discovery.report`."""

    def __init__(
        self,
        log: GroupLog,
        view: RegistryView,
        outcomes: OutcomeStore,
        clock: Clock,
        sessions: NatsSessions,
        experience: Experience,
    ) -> None:
        self._log = log
        self._view = view
        self._outcomes = outcomes
        self._clock = clock
        self._sessions = sessions
        self._experience = experience
        self._read: OrderedDict[CommId, None] = OrderedDict()
        self._reading = asyncio.Lock()

    async def report(self, request: ReportOutcomes) -> Acknowledged:
        """Keep how the tasks of an ended group went, one outcome for each pool; reporting them again changes nothing.

        A cancelled task says nothing of its assignee, and a rejected one is not done. Tasks of the owner, and of its pool,
        are not counted, nor are those that had less than a second, or less than tasks of their pool usually take.

        Raises:
            NotFoundError: There is no such group, or the asker was no member.
            ForbiddenError: Another member owned it.
            ConflictError: It has not ended.
            SupersededError: Another process has taken the owner's id over.
        """
        await self._sessions.check(request.agent_id, request.session)
        head = await self._log.last(request.comm_id)
        if head is None or not head.entry.state.is_member(request.agent_id):
            raise no_group(request.comm_id)
        state = head.entry.state
        if state.owner != request.agent_id:
            raise ForbiddenError(f"{request.agent_id} may not tell how group {request.comm_id} went: {state.owner} owned it.")
        if not state.phase.is_terminal:
            raise ConflictError(f"The group {request.comm_id} has not ended.", hint="Report its tasks when it has.")
        async with self._reading:
            if request.comm_id not in self._read:
                await self._assess(state)
        return Acknowledged()

    async def _assess(self, state: GroupState) -> None:
        """Keep what the log of a group says. One is read at a time: whoever reports it many times at once has it read once."""
        owner = self._view.card(state.owner)
        by_pool: defaultdict[PoolId, list[EndedTask]] = defaultdict(list)
        for task in await self._ended(state.comm_id):
            record = self._view.card(task.assignee)
            if task.assignee == state.owner or record is None or (owner is not None and record.card.pool == owner.card.pool):
                continue
            if self._had_time(record.card.pool, task):
                by_pool[record.card.pool].append(task)
        for pool, tasks in by_pool.items():
            told = _most_like(tasks)
            name = name_of_pool(state.comm_id, pool)
            outcome = Outcome(
                pool=pool,
                agent_id=told.assignee,
                need=told.need,
                done=told.done,
                at=min(told.at, self._clock.now()),
                seconds=told.took.total_seconds(),
                usage=told.usage,
                task=name,
                owner=PoolId(state.owner) if owner is None else owner.card.pool,
            )
            if not self._experience.is_news(outcome):  # which group was read is known to this process alone, since it was started
                continue
            await self._outcomes.put(outcome, key=name)
            _counts[told.done].inc()
        self._read[state.comm_id] = None
        if len(self._read) > _REMEMBERED_GROUPS:
            self._read.popitem(last=False)

    async def _ended(self, comm_id: CommId) -> Sequence[EndedTask]:
        """Read the tasks that have ended off a log, a page at a time."""
        tasks, entries, size, after = EndedTasks(), 0, 0, 0
        while entries < _READ_ENTRIES and size < _READ_BYTES:
            limit = min(_PAGE_ENTRIES, _READ_ENTRIES - entries)
            page = await self._log.read(comm_id, after=after, limit=limit, max_bytes=min(_PAGE_BYTES, _READ_BYTES - size))
            if not page:
                break
            tasks.apply(one.entry for one in page)
            entries, size, after = entries + len(page), size + sum(one.size_bytes for one in page), page[-1].seq
        return list(tasks)

    def _had_time(self, pool: PoolId, task: EndedTask) -> bool:
        """Whether somebody of a pool could have been done with a task before its deadline."""
        if task.patience is None:
            return True
        usual = self._experience.usual_seconds(pool)
        return task.patience >= max(_LEAST_PATIENCE, timedelta(seconds=usual or 0.0))


def _most_like(tasks: Sequence[EndedTask]) -> EndedTask:
    """Return the task that stands for all: it ended as most did, failed if as many failed, and took the median time of those."""
    done, failed = [one for one in tasks if one.done], [one for one in tasks if not one.done]
    alike = sorted(done if len(done) > len(failed) else failed, key=lambda one: one.took)
    return alike[len(alike) // 2]
