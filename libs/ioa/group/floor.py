"""Who may speak: granting the floor, waiting, and ending the group. At any moment at most one agent holds it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta

from ioa.group import budget
from ioa.group.rejection import IllegalEventError, RejectionCode
from ioa.group.state import (
    Assigned,
    AwaitingAcks,
    ClosedTask,
    Concluding,
    Discussing,
    Ended,
    GroupState,
    Paused,
)
from ioa.protocol.goals import Artifact, Degraded, ForcedReason, Reason
from ioa.protocol.ids import AgentId, MessageId
from ioa.protocol.messages import Phase, TaskOutcome

ROUNDS_OF_SILENCE = 2
"""The group is given up after this many floor timeouts in a row for each member; lost ones count, since they may return."""


@dataclass(frozen=True)
class StateRule:
    """A transition that the state calls for by itself, whatever event has led to it.

    Attributes:
        phases: Where it is asked, whenever the group comes there and after each event that leaves it there.
        when: Returns something true if the group has to go on to `target`.
        apply: How it gets there, if it has to.
    """

    name: str
    phases: frozenset[Phase]
    when: Callable[[GroupState], object]
    apply: Callable[[GroupState, datetime], GroupState]
    target: Phase
    meaning: str


def take_turn(state: GroupState, **changed: object) -> GroupState:
    """Count a turn: its holder has spoken. `changed` are further fields to set in the same copy, which is expensive."""
    return state.model_copy(update={**turn_taken(state), **changed})


def turn_taken(state: GroupState) -> dict[str, object]:
    """Return the fields of a state that change when its holder has spoken."""
    return {"turns_taken": state.turns_taken + 1, "silences": 0, "passes": ()}


def give_back(state: GroupState, agent_id: AgentId, at: datetime) -> GroupState:
    """Grant the floor to a member that waited for it, or to a living one in its place."""
    return grant(state, _living_or_substitute(state, agent_id), at)


def grant(state: GroupState, agent_id: AgentId, at: datetime, within: timedelta | None = None) -> GroupState:
    """Give the floor to a member. What would end its turn at once is asked before, so that each number is of one grant.

    `within` is how long it has the floor; None: as its card says, or its group.
    """
    if NO_TURN_LEFT.when(state):
        return NO_TURN_LEFT.apply(state, at)
    if BUDGET_SPENT.when(state):
        return BUDGET_SPENT.apply(state, at)
    return state.model_copy(update=_granted(state, agent_id, at, within))


def cannot_pay(state: GroupState, speakers: int = 1) -> bool:
    """Whether the budget does not reach for what so many members may say, after a turn; who waited may go on with less."""
    return budget.spent_budget(state, speakers) is not None


def grant_if_paid(state: GroupState, agent_id: AgentId, at: datetime, within: timedelta | None = None) -> GroupState:
    """Give the floor to a member, unless no turn or budget is left for its turn."""
    if state.turns_left and cannot_pay(state):
        return BUDGET_SPENT.apply(state, at)
    return grant(state, agent_id, at, within)


def take_turn_and_grant(state: GroupState, agent_id: AgentId, at: datetime, **changed: object) -> GroupState:
    """Count a turn and give the floor to another member: both in one copy, unless no turn or no budget would be left."""
    if state.turns_left <= 1 or cannot_pay(state):
        return grant_if_paid(take_turn(state, **changed), agent_id, at)
    return take_turn(state, **changed, **_granted(state, agent_id, at))


def until(state: GroupState, agent_id: AgentId, at: datetime, within: timedelta | None = None) -> datetime:
    """Until when a member may speak that is let now; `within` is how long, None: as its card says, or its group."""
    if within is not None:
        return min(at + within, state.limits.deadline)
    return floor_time(state, agent_id, at, state.limits.floor_timeout)


def floor_time(state: GroupState, agent_id: AgentId, at: datetime, timeout: timedelta) -> datetime:
    """Return when a floor granted to the member at `at` ends."""
    patience = state.patience_of(agent_id)
    return at + timeout if patience is None else min(at + patience, state.limits.deadline)


def open_conclusion(state: GroupState, agent_id: AgentId, at: datetime, *, forced: ForcedReason | None) -> GroupState:
    """End the discussion: give a member the floor for nothing but the conclusion."""
    return _grant_conclusion(state.model_copy(update={"silences": 0, "passes": ()}), agent_id, at, forced=forced)


def concluder(state: GroupState) -> AgentId:
    """Return who states a conclusion that nobody has taken on: under a policy the first living leader, else the owner."""
    leader = None if state.course is None else state.course.leader
    living = (member.agent_id for member in state.members if leader in member.roles and member.takes_part)
    return state.owner if leader is None else next(living, state.owner)


def note_repetition(state: GroupState, by: AgentId, turn: int, message_id: MessageId) -> GroupState | None:
    """Note that a message of the floor holder was a repetition; None if it is not the first of its turn.

    Raises:
        IllegalEventError: The turn is over.
    """
    if turn != state.turn:
        raise IllegalEventError(RejectionCode.STALE_TURN, f"Turn {turn} is not the current one; that is {state.turn}.")
    stage = state.stage
    if not isinstance(stage, Discussing) or stage.holder != by:
        raise IllegalEventError(RejectionCode.NOT_YOUR_FLOOR, f"{by} does not hold the floor.")
    if stage.repeated == message_id:
        return state
    if stage.repeated is not None:
        return None
    return state.model_copy(update={"stage": stage.model_copy(update={"repeated": message_id})})


def concludes(state: GroupState, agent_id: AgentId) -> bool:
    """Whether a member is the one to state the conclusion, if it ends the discussion now."""
    return _living_or_substitute(state, agent_id) == agent_id


def force_way_out(state: GroupState, holder: AgentId, at: datetime) -> GroupState:
    """End a discussion that has nothing new to say: wait for the open tasks, or let the owner conclude if there are none.

    Nothing is cut short, so the owner may still conclude that the goal was reached.
    """
    triggers = tuple(task.task_id for task in state.unfinished_tasks)
    if not triggers:
        return open_conclusion(state, state.owner, at, forced=None)
    stage = Paused(pauser=holder, triggers=triggers, until=at + state.limits.pause_timeout)
    return take_turn(state, stage=stage)


def pass_on(state: GroupState, at: datetime) -> GroupState:
    """Take the floor from its holder and give it to the next living member; nobody has spoken, so no turn is used up."""
    match state.stage:
        case Discussing(holder=holder):
            return grant(state, next_living(state, holder), at)
        case Concluding(speaker=speaker, forced=forced):
            return _grant_conclusion(state, next_living(state, speaker), at, forced=forced)
        case _:
            return state


def end(
    state: GroupState,
    reason: Reason,
    content: str,
    at: datetime,
    artifacts: tuple[Artifact, ...] = (),
    degraded: Degraded | None = None,
    limit: ForcedReason | None = None,
) -> GroupState:
    """End the group for good; tasks that are not closed are cancelled."""
    stage = Ended(reason=reason, content=content, artifacts=artifacts, ended_at=at, degraded=degraded, limit=limit)
    return _cancel_tasks(state, f"the group ended: {reason}").model_copy(update={"stage": stage})


def end_at_deadline(state: GroupState, at: datetime) -> GroupState:
    """End the group since its time is over."""
    return end(state, Reason.DEADLINE, "The deadline passed before the goal was reached.", at)


def next_living(state: GroupState, agent_id: AgentId) -> AgentId:
    """Return the willing member that follows `agent_id` in the order of joining, or `agent_id` itself if there is none."""
    order = [member.agent_id for member in state.members]
    at = order.index(agent_id) if agent_id in order else -1
    willing = set(state.willing())
    return next((other for other in (*order[at + 1 :], *order[:at]) if other in willing), agent_id)


def mark_lost(state: GroupState, agent_id: AgentId, at: datetime) -> GroupState:
    """Record that a member's lease has run out."""
    return _mark(state, agent_id, lost=True, lost_at=at)


def mark_living(state: GroupState, agent_id: AgentId) -> GroupState:
    """Record that a member's lease stands."""
    return _mark(state, agent_id, lost=False, lost_at=None)


def _granted(state: GroupState, agent_id: AgentId, at: datetime, within: timedelta | None = None) -> dict[str, object]:
    stage = Discussing(holder=agent_id, until=until(state, agent_id, at, within), since=at)
    return {"stage": stage, "turn": state.turn + 1}


def _mark(state: GroupState, agent_id: AgentId, **standing: object) -> GroupState:
    members = tuple(member.model_copy(update=standing) if member.agent_id == agent_id else member for member in state.members)
    return state.model_copy(update={"members": members})


def _grant_conclusion(state: GroupState, agent_id: AgentId, at: datetime, *, forced: ForcedReason | None) -> GroupState:
    speaker = _living_or_substitute(state, agent_id)
    ends = floor_time(state, speaker, at, state.limits.conclusion_timeout)
    stage = Concluding(speaker=speaker, until=ends, forced=forced, since=at)
    return state.model_copy(update={"stage": stage, "turn": state.turn + 1})


def _living_or_substitute(state: GroupState, agent_id: AgentId) -> AgentId:
    living = state.living()
    if agent_id in living or not living:
        return agent_id
    return state.owner if state.owner in living else living[0]


def _cancel_tasks(state: GroupState, why: str) -> GroupState:
    """Cancel what is open or waiting."""
    cancelled = tuple(task if isinstance(task, ClosedTask) else task.closed(TaskOutcome.CANCELLED, why) for task in state.tasks)
    return state.model_copy(update={"tasks": cancelled})


def _force_conclusion(state: GroupState, forced: ForcedReason, why: str, at: datetime) -> GroupState:
    """Cut the discussion short: cancel open tasks and let the owner conclude."""
    return open_conclusion(_cancel_tasks(state, why), concluder(state), at, forced=forced)


def _no_turn_left(state: GroupState) -> bool:
    return state.turns_left == 0


def _use_up_turns(state: GroupState, at: datetime) -> GroupState:
    return _force_conclusion(state, Reason.MAX_TURNS, "no turn is left", at)


def _use_up_budget(state: GroupState, at: datetime) -> GroupState:
    return _force_conclusion(state, Reason.BUDGET, f"the {budget.spent_budget(state, 1)} budget is spent", at)


def _waits_for_nothing(state: GroupState) -> bool:
    match state.stage:
        case AwaitingAcks(waiting=waiting):
            awaited = {task.task_id for task in state.open_tasks if task.progress == 0 and task.subgroup is None}
        case Assigned(waiting=waiting) | Paused(triggers=waiting):
            awaited = {task.task_id for task in state.unfinished_tasks}
        case _:
            return False
    return awaited.isdisjoint(waiting)


def _wake(state: GroupState, at: datetime) -> GroupState:
    """Return the floor to whoever waits."""
    match state.stage:
        case AwaitingAcks(assigner=waiter) | Assigned(assigner=waiter) | Paused(pauser=waiter):
            return give_back(state, waiter, at)
        case _:
            return state


_WAITING = frozenset({Phase.AWAITING_ACKS, Phase.ASSIGNED, Phase.PAUSED})

NO_TURN_LEFT = StateRule(
    "no turn left",
    frozenset({Phase.DISCUSSING}),
    _no_turn_left,
    _use_up_turns,
    Phase.CONCLUDING,
    "nobody gets the floor to discuss any more: open tasks are cancelled and the owner has to conclude",
)
BUDGET_SPENT = StateRule(
    "budget spent",
    _WAITING | {Phase.DISCUSSING, Phase.GATHERING, Phase.DECIDING},
    budget.spent_budget,
    _use_up_budget,
    Phase.CONCLUDING,
    "no token or no money is left: open tasks are cancelled and the owner has to conclude",
)
NOTHING_TO_WAIT_FOR = StateRule(
    "nothing left to wait for",
    _WAITING,
    _waits_for_nothing,
    _wake,
    Phase.DISCUSSING,
    "the floor returns to whoever assigned or paused, or to a living member in its place",
)
