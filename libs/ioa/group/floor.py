"""The floor: grants of turns, seats and the conclusion, with their timeouts, and the end of a group."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from ioa.group import budget
from ioa.group.state import ClosedTask, Concluding, Discussing, Ended, Gathering, GroupState, OpenTask, Seat, Votes, WaitingTask
from ioa.protocol.goals import Artifact, Degraded, ForcedReason, Reason
from ioa.protocol.ids import AgentId
from ioa.protocol.messages import Phase, TaskOutcome
from ioa.protocol.policy import Policy
from ioa.protocol.policy_parts import FormField

ROUNDS_OF_SILENCE = 2
"""A group fails after this many floor timeouts in a row for each member. Lost members count, because they may return."""


def take_turn(state: GroupState, **changed: object) -> GroupState:
    """Count a turn of the floor holder, and set further fields in the same copy, because copies take time."""
    return state.model_copy(update=spoken(state, **changed))


def spoken(state: GroupState, **changed: object) -> dict[str, object]:
    """Return the fields of a state that a message changes, with further fields."""
    changed.update(turns_taken=state.turns_taken + 1, silences=0, passes=())
    return changed


def give_back(state: GroupState, agent_id: AgentId, at: datetime) -> GroupState:
    """Grant the floor to a member that waited for it, or to a living one in its place."""
    speaker = living_or_substitute(state, agent_id)
    return grant(state, speaker, at, state.patience_of(speaker))


def grant(state: GroupState, agent_id: AgentId, at: datetime, within: timedelta | None, *, speakers: int = 0) -> GroupState:
    """Grant the floor to a member, or force the conclusion if no turn or budget is left.

    The budget must cover the turns of `speakers`; a member that waited may use the rest.
    """
    return cut_short(state, at, speakers) or state.model_copy(update=granted(state, agent_id, at, within))


def granted(state: GroupState, agent_id: AgentId, at: datetime, within: timedelta | None) -> dict[str, object]:
    """Return the fields of a state that a grant of the floor changes."""
    return {"stage": Discussing.of_valid(holder=agent_id, until=until(state, at, within), since=at), "turn": state.turn + 1}


def take_turn_and_grant(state: GroupState, agent_id: AgentId, at: datetime, **changed: object) -> GroupState:
    """Count a turn and grant the floor to the next speaker, in one copy if turns and budget are left."""
    within = state.patience_of(agent_id)
    if state.turns_left <= 1 or budget.spent_budget(state, 1):
        return grant(take_turn(state, **changed), agent_id, at, within, speakers=1)
    changed.update(granted(state, agent_id, at, within), turns_taken=state.turns_taken + 1, silences=0, passes=())
    return state.model_copy(update=changed)


def gather(
    state: GroupState,
    agents: Mapping[AgentId, timedelta | None],
    at: datetime,
    *,
    votes: Votes | None = None,
    form: tuple[FormField, ...] = (),
) -> GroupState:
    """Grant a seat to each of several members for its time, or force the conclusion if turns or budget do not suffice."""
    if (concluding := cut_short(state, at, len(agents))) is not None:
        return concluding
    seats = tuple([Seat.of_valid(agent_id=agent, until=until(state, at, within)) for agent, within in agents.items()])
    stage = Gathering.of_valid(seats=seats, since=at, votes=votes, form=form)
    return state.model_copy(update={"stage": stage, "turn": state.turn + 1})


def cut_short(state: GroupState, at: datetime, speakers: int) -> GroupState | None:
    """Force the conclusion if too few turns, or too little budget, are left for some speakers; otherwise return None."""
    if state.turns_left < max(1, speakers):
        return NO_TURN_LEFT.apply(state, at, None)
    return BUDGET_SPENT.apply(state, at, None) if budget.spent_budget(state, speakers) else None


def until(state: GroupState, at: datetime, within: timedelta | None, timeout: timedelta | None = None) -> datetime:
    """Return the end of a turn that is granted now.

    `within` is the patience on the speaker's card, or the timeout of its role. Without one the turn has `timeout`, by default the
    floor timeout of the group.
    """
    return at + (timeout or state.limits.floor_timeout) if within is None else min(at + within, state.limits.deadline)


def open_conclusion(state: GroupState, agent_id: AgentId, at: datetime, forced: ForcedReason | None = None) -> GroupState:
    """End the discussion: grant a member the floor for nothing but the conclusion."""
    return _grant_conclusion(state, agent_id, at, forced, silences=0, passes=())


def concluder(state: GroupState) -> AgentId:
    """Return the member that states the conclusion: under a policy the first living leader, otherwise the owner."""
    leader = None if state.course is None else state.course.leader
    living = (member.agent_id for member in state.members if leader in member.roles and member.takes_part)
    return state.owner if leader is None else next(living, state.owner)


def pass_on(state: GroupState, at: datetime) -> GroupState:
    """Grant the floor of a silent holder to the next living member; no turn is used up."""
    stage = state.stage
    if isinstance(stage, Concluding):
        return _grant_conclusion(state, next_living(state, stage.speaker), at, stage.forced)
    assert isinstance(stage, Discussing)
    speaker = next_living(state, stage.holder)
    return grant(state, speaker, at, state.patience_of(speaker))


def end(
    state: GroupState,
    reason: Reason,
    content: str,
    at: datetime,
    artifacts: tuple[Artifact, ...] = (),
    degraded: Degraded | None = None,
    limit: ForcedReason | None = None,
) -> GroupState:
    """End the group; tasks that are not closed are cancelled."""
    stage = Ended(reason=reason, content=content, artifacts=artifacts, ended_at=at, degraded=degraded, limit=limit)
    return cancel_tasks(state, f"the group ended: {reason}").model_copy(update={"stage": stage})


def cancel_tasks(state: GroupState, why: str, which: Callable[[OpenTask | WaitingTask], bool] = lambda _task: True) -> GroupState:
    """Cancel the open and waiting tasks for which a condition holds; by default all of them."""
    if not state.tasks:
        return state
    cancelled = [
        task if isinstance(task, ClosedTask) or not which(task) else task.closed(TaskOutcome.CANCELLED, why) for task in state.tasks
    ]
    return state.model_copy(update={"tasks": tuple(cancelled)})


def change_members(state: GroupState, agents: Collection[AgentId], **changed: object) -> GroupState:
    """Change fields of some members."""
    members = [one.model_copy(update=changed) if one.agent_id in agents else one for one in state.members]
    return state.model_copy(update={"members": tuple(members)})


def next_living(state: GroupState, agent_id: AgentId) -> AgentId:
    """Return the willing member that follows `agent_id` in the order of joining, or `agent_id` itself if there is none."""
    order = [member.agent_id for member in state.members]
    at = order.index(agent_id) if agent_id in order else -1
    willing = set(state.willing())
    return next((other for other in (*order[at + 1 :], *order[:at]) if other in willing), agent_id)


def _grant_conclusion(
    state: GroupState, agent_id: AgentId, at: datetime, forced: ForcedReason | None, **changed: object
) -> GroupState:
    speaker = living_or_substitute(state, agent_id)
    ends = until(state, at, state.patience_of(speaker), state.limits.conclusion_timeout)
    stage = Concluding.of_valid(speaker=speaker, until=ends, forced=forced, since=at)
    return state.model_copy(update={"stage": stage, "turn": state.turn + 1, **changed})


def living_or_substitute(state: GroupState, agent_id: AgentId) -> AgentId:
    """Return a member, or a living one in its place."""
    living = state.living()
    if agent_id in living or not living:
        return agent_id
    return state.owner if state.owner in living else living[0]


@dataclass(frozen=True)
class StateRule:
    """A transition that the state itself calls for, after any event.

    Attributes:
        phases: Phases in which it is checked after each event.
        when: Returns a true value if the group must go on to `target`.
        apply: Makes the transition.
    """

    name: str
    phases: frozenset[Phase]
    when: Callable[[GroupState], object]
    apply: Callable[[GroupState, datetime, Policy | None], GroupState]
    target: Phase
    meaning: str


def _force_conclusion(state: GroupState, forced: ForcedReason, why: str, at: datetime) -> GroupState:
    return open_conclusion(cancel_tasks(state, why), concluder(state), at, forced)


WAITING = frozenset({Phase.AWAITING_ACKS, Phase.ASSIGNED, Phase.PAUSED})

NO_TURN_LEFT = StateRule(
    "no turn left",
    frozenset({Phase.DISCUSSING}),
    lambda state: state.turns_left == 0,
    lambda state, at, _policy: _force_conclusion(state, Reason.MAX_TURNS, "no turn is left", at),
    Phase.CONCLUDING,
    "no member gets the floor again: open tasks are cancelled and the owner has to conclude",
)
BUDGET_SPENT = StateRule(
    "budget spent",
    WAITING | {Phase.DISCUSSING, Phase.GATHERING, Phase.DECIDING},
    budget.spent_budget,
    lambda state, at, _policy: _force_conclusion(state, Reason.BUDGET, f"the {budget.spent_budget(state, 1)} budget is spent", at),
    Phase.CONCLUDING,
    "no tokens or no money are left: open tasks are cancelled and the owner has to conclude",
)
