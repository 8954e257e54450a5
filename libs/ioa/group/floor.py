"""Who may speak: granting the floor, waiting, and ending the group. At any moment at most one agent holds it."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from ioa.group import budget
from ioa.group.state import (
    Assigned,
    AwaitingAcks,
    Concluding,
    Discussing,
    Ended,
    GroupState,
    Member,
    OpenTask,
    Paused,
)
from ioa.protocol.goals import Artifact, Degraded, Reason
from ioa.protocol.ids import AgentId
from ioa.protocol.levels import LOST_MEMBERS_ARE_NAMED
from ioa.protocol.messages import TaskOutcome

ForcedReason = Literal[Reason.MAX_TURNS, Reason.BUDGET]


def take_turn(state: GroupState, **changed: object) -> GroupState:
    """Count a turn: its holder has spoken. `changed` is what else is another now, since copies take time."""
    return state.model_copy(update={"turns_taken": state.turns_taken + 1, "silences": 0, **changed})


def give_back(state: GroupState, agent_id: AgentId, at: datetime) -> GroupState:
    """Grant the floor to a member that waited for it, or to a living one in its place."""
    return grant(state, _living_or_substitute(state, agent_id), at)


def grant(state: GroupState, agent_id: AgentId, at: datetime) -> GroupState:
    """Give the floor to a member. With no turn or budget left the conclusion is forced instead."""
    if state.turns_left == 0:
        return force_conclusion(state, Reason.MAX_TURNS, "no turn is left", at)
    if (what := budget.spent_budget(state)) is not None:
        return force_conclusion(state, Reason.BUDGET, f"the {what} budget is spent", at)
    stage = Discussing(holder=agent_id, until=at + state.limits.floor_timeout)
    return state.model_copy(update={"stage": stage, "turn": state.turn + 1})


def open_conclusion(state: GroupState, agent_id: AgentId, at: datetime, *, forced: ForcedReason | None) -> GroupState:
    """End the discussion: give a member the floor for nothing but the conclusion."""
    return _grant_conclusion(state.model_copy(update={"silences": 0}), agent_id, at, forced=forced)


def force_conclusion(state: GroupState, forced: ForcedReason, why: str, at: datetime) -> GroupState:
    """Cut the discussion short: cancel open tasks and let the owner conclude."""
    return open_conclusion(_cancel_open_tasks(state, why), state.owner, at, forced=forced)


def force_way_out(state: GroupState, holder: AgentId, at: datetime) -> GroupState:
    """End a discussion that has nothing new to say: wait for the open tasks, or let the owner conclude if there are none.

    Nothing is cut short, so the owner may still conclude that the goal was reached.
    """
    triggers = tuple(task.task_id for task in state.open_tasks)
    if not triggers:
        return open_conclusion(state, state.owner, at, forced=None)
    stage = Paused(pauser=holder, triggers=triggers, until=at + state.limits.pause_timeout)
    return take_turn(state, stage=stage)


def hold_to_budget(state: GroupState, at: datetime) -> GroupState:
    """Cut the discussion short once a budget is spent; what is being concluded may be concluded."""
    what = budget.spent_budget(state)
    if what is None or isinstance(state.stage, Concluding | Ended):
        return state
    return force_conclusion(state, Reason.BUDGET, f"the {what} budget is spent", at)


def pass_on(state: GroupState, at: datetime) -> GroupState:
    """Take the floor from its holder and give it to the next living member; nobody has spoken, so no turn is used up."""
    match state.stage:
        case Discussing(holder=holder):
            return grant(state, next_living(state, holder), at)
        case Concluding(speaker=speaker, forced=forced):
            return _grant_conclusion(state, next_living(state, speaker), at, forced=forced)
        case _:
            return state


def release(state: GroupState, at: datetime) -> GroupState:
    """Return the floor to whoever waits for tasks, if nothing is left to wait for."""
    match state.stage:
        case AwaitingAcks(assigner=waiter, waiting=waiting):
            awaited = {task.task_id for task in state.open_tasks if task.progress == 0 and task.subgroup is None}
        case Assigned(assigner=waiter, waiting=waiting) | Paused(pauser=waiter, triggers=waiting):
            awaited = {task.task_id for task in state.open_tasks}
        case _:
            return state
    return give_back(state, waiter, at) if awaited.isdisjoint(waiting) else state


def end(
    state: GroupState,
    reason: Reason,
    content: str,
    at: datetime,
    artifacts: tuple[Artifact, ...] = (),
    degraded: Degraded | None = None,
) -> GroupState:
    """End the group for good; tasks still open are cancelled."""
    stage = Ended(reason=reason, content=content, artifacts=artifacts, ended_at=at, degraded=degraded)
    return _cancel_open_tasks(state, f"the group ended: {reason}").model_copy(update={"stage": stage})


def next_living(state: GroupState, agent_id: AgentId) -> AgentId:
    """The living member that follows `agent_id` in the order of joining, or `agent_id` itself if there is none."""
    order = [member.agent_id for member in state.members]
    at = order.index(agent_id) if agent_id in order else -1
    living = set(state.living())
    return next((other for other in (*order[at + 1 :], *order[:at]) if other in living), agent_id)


def mark_lost(state: GroupState, agent_id: AgentId, at: datetime) -> GroupState:
    """Record that a member's lease has run out."""
    told = state.limits.level >= LOST_MEMBERS_ARE_NAMED
    return _mark(state, Member(agent_id=agent_id, lost=True, lost_at=at if told else None))


def mark_living(state: GroupState, agent_id: AgentId) -> GroupState:
    """Record that a member's lease stands."""
    return _mark(state, Member(agent_id=agent_id))


def _mark(state: GroupState, marked: Member) -> GroupState:
    members = tuple(marked if member.agent_id == marked.agent_id else member for member in state.members)
    return state.model_copy(update={"members": members})


def _grant_conclusion(state: GroupState, agent_id: AgentId, at: datetime, *, forced: ForcedReason | None) -> GroupState:
    speaker = _living_or_substitute(state, agent_id)
    stage = Concluding(speaker=speaker, until=at + state.limits.conclusion_timeout, forced=forced)
    return state.model_copy(update={"stage": stage, "turn": state.turn + 1})


def _living_or_substitute(state: GroupState, agent_id: AgentId) -> AgentId:
    living = state.living()
    if agent_id in living or not living:
        return agent_id
    return state.owner if state.owner in living else living[0]


def _cancel_open_tasks(state: GroupState, why: str) -> GroupState:
    return state.model_copy(
        update={
            "tasks": tuple(task.closed(TaskOutcome.CANCELLED, why) if isinstance(task, OpenTask) else task for task in state.tasks)
        }
    )
