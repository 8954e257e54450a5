"""A goal's group and the teams nested in it, on the real machine; effects travel from one to the other as the ledger sends them."""

from __future__ import annotations

from dataclasses import dataclass, field

from ioa.group.events import CancelRequested, Event, GroupLaunched, Said, SubgroupClosed, SubgroupOpened
from ioa.group.machine import CancelSubgroup, Effect, ReportToParent, step
from ioa.group.rejection import IllegalEventError
from ioa.group.state import GroupState, OpenTask
from ioa.protocol.ids import CommId, TaskId, comm_id_of_task
from ioa.protocol.messages import (
    AsyncTaskAssignment,
    ConcludeGroupDiscussion,
    Conclusion,
    Discussion,
    InformTaskProgress,
    InformTaskResult,
    Pause,
    Payload,
    SyncTaskAssignment,
    TaskSpec,
)
from ioa.protocol.setup.charter import Limits, ParentTask
from ioa.protocol.usage import NOTHING, Usage
from tests.unit.group.scenario import COMM, START, charter, said
from tests.unit.group.walk import AGENTS, Choose

TURN_TAKERS = (Discussion, SyncTaskAssignment, AsyncTaskAssignment, Pause)


@dataclass
class Tree:
    """All groups of one goal by their ids, the root first, and what was accepted in each."""

    limits: Limits
    states: dict[CommId, GroupState] = field(default_factory=dict)
    said: dict[CommId, list[Said]] = field(default_factory=dict)
    teams_cost: int = 0
    lost_reports: bool = False

    def __post_init__(self) -> None:
        self._launch(COMM, self.limits, 0, None, NOTHING)

    def happens(self, comm_id: CommId, event: Event) -> bool:
        """Apply an event and all that follows in other groups; False if it is refused."""
        try:
            transition = step(self.states[comm_id], event)
        except IllegalEventError:
            return False
        self.states[comm_id] = transition.state
        if isinstance(event, Said):
            self.said[comm_id].append(event)
        self.lost_reports |= transition.state.phase.is_terminal and bool(transition.state.loans)
        for effect in transition.effects:
            self._follow(effect)
        return True

    def nest(self, task: OpenTask, comm_id: CommId, usage: Usage) -> bool:
        """Have an assignee open a team for its task, as group setup does; False if there may be none."""
        subgroup = comm_id_of_task(comm_id, task.task_id)
        opened = SubgroupOpened(at=START, task_id=task.task_id, by=task.assignee, subgroup=subgroup)
        if not self.happens(comm_id, opened):
            return False
        parent = self.states[comm_id]
        loan = parent.loan(subgroup)
        assert loan is not None
        shares = {
            "max_turns": loan.turns,
            "max_tokens": loan.tokens,
            "max_cost_micros": loan.cost_micros,
            "deadline": loan.deadline,
        }
        limits = parent.limits.model_copy(update=shares)
        self._launch(subgroup, limits, parent.depth + 1, ParentTask(comm_id=comm_id, task_id=task.task_id), usage)
        return True

    def act(self, comm_id: CommId, choose: Choose, usage: Usage) -> None:
        """Let somebody in a group do something that carries it on."""
        state = self.states[comm_id]
        works = choose((True, True, False))
        if state.open_tasks and works:
            self._work(comm_id, choose(state.open_tasks), choose, usage)
        elif (holder := state.floor_holder) is not None:
            payload = self._speech(state, choose)
            self.happens(comm_id, said(holder, payload, state.turn, comm_id=comm_id, usage=usage))

    def turns(self) -> int:
        """How many turns were taken in all groups together."""
        return sum(isinstance(one.message.payload, TURN_TAKERS) for group in self.said.values() for one in group)

    def spent(self, *, conclusions: bool) -> int:
        """How many tokens all groups together have told of, counted anew from what was said, with or without conclusions."""
        counted = [
            _usage(one).tokens
            for group in self.said.values()
            for one in group
            if conclusions or not isinstance(one.message.payload, Conclusion)
        ]
        return sum(counted) + sum(_told_of_tasks(group) for group in self.said.values()) + self.teams_cost

    def _work(self, comm_id: CommId, task: OpenTask, choose: Choose, usage: Usage) -> None:
        if task.subgroup is None and choose((True, True, False)) and self.nest(task, comm_id, usage):
            return
        total = task.spent.plus(usage)
        report: Payload = InformTaskProgress(task_id=task.task_id, number=task.progress + 1, usage=total)
        if task.subgroup is None and choose((True, False)):
            report = InformTaskResult(task_id=task.task_id, task_conclusion="…", usage=total)
        self.happens(comm_id, said(task.assignee, report, task.turn, comm_id=comm_id))

    def _speech(self, state: GroupState, choose: Choose) -> Payload:
        if state.phase == "concluding":
            return Conclusion(content="Ten.")
        holder = state.floor_holder
        first = state.tasks_given
        fresh = tuple(
            TaskSpec(
                task_id=TaskId(f"t{state.turn}-{number}"), assignee=choose(AGENTS), task_desc=f"job {number} in {state.comm_id}"
            )
            for number in range(first, first + choose((1, 2)))
        )
        options: list[Payload] = [
            Discussion(content=f"Point {state.turn}.", next_speaker=next(agent for agent in AGENTS if agent != holder)),
            SyncTaskAssignment(tasks=fresh),
            AsyncTaskAssignment(tasks=fresh),
            AsyncTaskAssignment(tasks=fresh),
        ]
        if state.open_tasks:
            options.append(Pause(triggers=tuple(task.task_id for task in state.open_tasks)))
        elif choose((True, *(False,) * 9)):
            return ConcludeGroupDiscussion()
        return choose(options)

    def _launch(self, comm_id: CommId, limits: Limits, depth: int, parent: ParentTask | None, usage: Usage) -> None:
        rules = charter(*AGENTS, limits=limits, depth=depth, parent=parent).model_copy(update={"comm_id": comm_id})
        self.states[comm_id] = step(None, GroupLaunched(at=START, charter=rules, usage=usage)).state
        self.said[comm_id] = []
        self.teams_cost += usage.tokens

    def _follow(self, effect: Effect) -> None:
        match effect:
            case ReportToParent(parent=parent, subgroup=subgroup, reason=reason, content=content):
                closed = SubgroupClosed(
                    at=START,
                    task_id=TaskId(parent.task_id),
                    subgroup=subgroup,
                    reason=reason,
                    content=content,
                    turns=effect.turns,
                    usage=effect.usage,
                )
                self.happens(parent.comm_id, closed)
            case CancelSubgroup(subgroup=subgroup):
                self.happens(subgroup, CancelRequested(at=START))
            case _:
                pass


def _usage(one: Said) -> Usage:
    return one.message.header.usage or NOTHING


def _told_of_tasks(group: list[Said]) -> int:
    """The largest total that was told of each task."""
    told: dict[TaskId, int] = {}
    for one in group:
        payload = one.message.payload
        if isinstance(payload, InformTaskProgress | InformTaskResult) and payload.usage is not None:
            told[payload.task_id] = max(told.get(payload.task_id, 0), payload.usage.tokens)
    return sum(told.values())
