"""What the control plane has to do once an entry is in the log. Every effect is idempotent, so doing it twice does no harm."""

from __future__ import annotations

from dataclasses import dataclass

from ioa.group.state import Ended, GroupState, ParentTask
from ioa.protocol.goals import Artifact, GoalResult, Reason
from ioa.protocol.ids import CommId


@dataclass(frozen=True)
class PublishResult:
    """Publish the one terminal result of a goal."""

    result: GoalResult


@dataclass(frozen=True)
class ReportToParent:
    """Close the parent group's task with what the nested team came to."""

    parent: ParentTask
    subgroup: CommId
    reason: Reason
    content: str
    artifacts: tuple[Artifact, ...]


@dataclass(frozen=True)
class CancelSubgroup:
    """Cancel a nested team whose task is closed."""

    subgroup: CommId
    why: str


Effect = PublishResult | ReportToParent | CancelSubgroup


def settle(state: GroupState) -> tuple[Effect, ...]:
    """List what an ended group still owes the world, from its state alone.

    A router that died between the terminal append and its effects leaves this to whoever looks at the group next.
    """
    if not isinstance(state.stage, Ended):
        return ()
    ended = state.stage
    owed: Effect
    if state.parent is None:
        owed = PublishResult(
            GoalResult(
                goal_id=state.goal_id,
                reason=ended.reason,
                content=ended.content,
                artifacts=ended.artifacts,
                comm_id=state.comm_id,
                turns=state.turns_taken,
                finished_at=ended.ended_at,
            )
        )
    else:
        owed = ReportToParent(state.parent, state.comm_id, ended.reason, ended.content, ended.artifacts)
    why = f"the group {state.comm_id} ended: {ended.reason}"
    subgroups = (CancelSubgroup(task.subgroup, why) for task in state.tasks if task.subgroup is not None)
    return (owed, *subgroups)
