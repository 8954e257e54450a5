"""Effects: actions of the control plane that follow from an entry. Every effect is idempotent."""

from __future__ import annotations

from dataclasses import dataclass

from ioa.group.state import ClosedTask, Ended, GroupState, OpenTask, ParentTask, Waiting
from ioa.protocol.decisions import Decisions
from ioa.protocol.goals import Artifact, Degraded, GoalResult, Reason
from ioa.protocol.ids import CommId, GoalName
from ioa.protocol.messages import Question
from ioa.protocol.usage import NOTHING, Usage


@dataclass(frozen=True)
class PublishResult:
    """Publish the one terminal result of a goal."""

    result: GoalResult


@dataclass(frozen=True)
class ReportToParent:
    """Close the parent group's task with the result and usage of the nested group."""

    parent: ParentTask
    subgroup: CommId
    reason: Reason
    content: str
    artifacts: tuple[Artifact, ...]
    turns: int = 0
    usage: Usage = NOTHING
    degraded: Degraded | None = None
    decisions: tuple[Decisions, ...] = ()


@dataclass(frozen=True)
class CancelSubgroup:
    """Cancel a nested group whose task is closed, or prevent its launch."""

    subgroup: CommId
    task: ParentTask
    goal: GoalName
    why: str


@dataclass(frozen=True)
class AskParent:
    """Pass a question of a nested group, with its turn, to the parent group."""

    parent: ParentTask
    subgroup: CommId
    number: int
    question: Question


@dataclass(frozen=True)
class AnswerSubgroup:
    """Pass the answer to the question of a turn, with its author, to a nested group."""

    subgroup: CommId
    turn: int
    answer: str
    by: str


Effect = PublishResult | ReportToParent | CancelSubgroup | AskParent | AnswerSubgroup


def owed_effects(state: GroupState) -> tuple[Effect, ...]:
    """Return the effects that follow from the state of a group.

    If a router stops between an append and its effects, any process that reads the group next carries them out. Effects may be
    repeated: a
    nested group is cancelled until it has ended and its loan is removed.
    """
    if not state.tasks and not isinstance(state.stage, (Waiting, Ended)):
        return ()
    of_tasks, lent = list[Effect](), {loan.subgroup for loan in state.loans}
    for task in state.tasks:
        if isinstance(task, ClosedTask) and task.subgroup in lent:
            of_tasks.append(cancel_subgroup(state, task))
        elif isinstance(task, OpenTask) and task.subgroup and (told := task.of_team) is not None and told.answer is not None:
            of_tasks.append(AnswerSubgroup(task.subgroup, told.turn, told.answer, told.by))
    return (*_asked(state), *_conclusion(state), *of_tasks)


def cancel_subgroup(state: GroupState, task: ClosedTask) -> CancelSubgroup:
    """Return the cancellation of the nested group of a closed task."""
    assert task.subgroup is not None
    served = ParentTask(comm_id=state.comm_id, task_id=task.task_id)
    return CancelSubgroup(task.subgroup, served, GoalName(state.user, state.goal_id), task.why or "its task is closed")


def _asked(state: GroupState) -> tuple[Effect, ...]:
    """Return the question of a nested group to the assigner of its task."""
    if state.question is None or state.parent is None:
        return ()
    return (AskParent(state.parent, state.comm_id, state.turn, state.question),)


def _lent(state: GroupState) -> Usage:
    """Return the loans of groups that are cancelled with this group: without their reports all of it counts."""
    return Usage(
        tokens_in=sum(loan.tokens or 0 for loan in state.loans),
        cost_micros=sum(loan.cost_micros or 0 for loan in state.loans),
    )


def _conclusion(state: GroupState) -> tuple[Effect, ...]:
    """Return the result of an ended group to its goal's owner, or to its parent."""
    if not isinstance(state.stage, Ended):
        return ()
    ended, turns = state.stage, state.turns_taken + state.nested_turns
    if state.parent is not None:
        used = turns + sum(loan.turns for loan in state.loans), state.spent.plus(_lent(state))
        report = ReportToParent(
            state.parent, state.comm_id, ended.reason, ended.content, ended.artifacts, *used, ended.degraded, state.decisions
        )
        return (report,)
    result = GoalResult(
        goal_id=state.goal_id,
        user=state.user,
        reason=ended.reason,
        content=ended.content,
        artifacts=ended.artifacts,
        comm_id=state.comm_id,
        turns=turns,
        usage=state.spent,
        degraded=ended.degraded,
        decisions=state.decisions,
        finished_at=ended.ended_at,
        limit=ended.limit,
    )
    return (PublishResult(result),)
