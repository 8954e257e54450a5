"""The group's finite-state machine: one table, one step function (paper, section 2.3.3).

`step` is pure and total: the same state and event give the same answer, an illegal event raises and leaves the state as it
was. What is legal when, and what follows, stands in `ioa.group.table`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from ioa.group import budget, floor, folding, monologue, tasks
from ioa.group.effects import CancelSubgroup, Effect, owed_effects
from ioa.group.events import (
    Event,
    EventKind,
    GroupLaunched,
    LaunchAbandoned,
    Said,
    SubgroupClosed,
    SubgroupOpened,
    kind_of,
)
from ioa.group.rejection import IllegalEventError, RejectionCode
from ioa.group.state import ClosedTask, Concluding, Discussing, Ended, GroupState, Limits, Member
from ioa.group.table import TABLE, Rule
from ioa.protocol.ids import AgentId
from ioa.protocol.messages import TASK_REPORTS


@dataclass(frozen=True)
class Transition:
    """Where the group stands now and what has to be done about it."""

    state: GroupState
    effects: tuple[Effect, ...] = ()


def step(state: GroupState | None, event: Event) -> Transition:
    """Apply one event to a group.

    Args:
        state: The group as its last log entry left it, or None while its log is empty.
        event: What happened.

    Raises:
        IllegalEventError: The event is not legal now; nothing has changed.
    """
    if state is None:
        return _open(event)
    try:
        after = _apply(state, event)
    except IllegalEventError as refused:
        raise _with_way_out(refused, state, event) from None
    return Transition(after, _newly_owed(state, after, event))


def check_said(state: GroupState, said: Said, check: Callable[[GroupState, Said], object]) -> None:
    """Judge a message that is to be no entry: by the rules for all messages, then by what `check` says of its content.

    Raises:
        IllegalEventError: It would not be legal as an entry.
    """
    try:
        _check(state, said)
        check(state, said)
    except IllegalEventError as refused:
        raise _with_way_out(refused, state, said) from None


def legal_kinds(state: GroupState, agent_id: AgentId, at: datetime) -> tuple[str, ...]:
    """Name the kinds of message that a member could send at a time, given the right content.

    A kind that is not named is refused, with one exception: a pause whose triggers are all closed is accepted while no task is
    open, since it may have crossed their results on the way. It is not offered, for it would only cost a turn.
    """
    kinds: list[str] = []
    if state.floor_holder == agent_id:
        if isinstance(state.stage, Concluding):
            kinds.append(EventKind.CONCLUSION)
        else:
            kinds += _legal_in_discussion(state, agent_id, at)
    if any(task.assignee == agent_id for task in state.open_tasks):
        kinds += [EventKind.INFORM_TASK_PROGRESS, EventKind.INFORM_TASK_RESULT]
    return tuple(kinds)


def _legal_in_discussion(state: GroupState, holder: AgentId, at: datetime) -> list[str]:
    """Whoever has the floor is evidently alive: it may give a task to itself, so that to conclude is never all it can do."""
    kinds: list[str] = [EventKind.SYNC_TASK_ASSIGNMENT, EventKind.ASYNC_TASK_ASSIGNMENT] if tasks.has_room(state) else []
    if any(other != holder for other in state.reachable(at)):
        kinds.append(EventKind.DISCUSSION)
    kinds.append(EventKind.PAUSE if state.open_tasks else EventKind.CONCLUDE_GROUP_DISCUSSION)
    return kinds


def _with_way_out(refused: IllegalEventError, state: GroupState, event: Event) -> IllegalEventError:
    """The same refusal, which names what the sender of a message could say instead."""
    legal = legal_kinds(state, event.message.header.sender, event.at) if isinstance(event, Said) else ()
    return IllegalEventError(refused.code, refused.message, legal=legal, repeats_turn=refused.repeats_turn)


def _open(event: Event) -> Transition:
    match event:
        case GroupLaunched(charter=charter, at=at):
            members = tuple(Member(agent_id=card.agent_id) for card in charter.team_members)
            state = GroupState(
                comm_id=charter.comm_id,
                goal_id=charter.goal_id,
                owner=charter.owner,
                members=members,
                limits=charter.limits,
                depth=charter.team_up_depth,
                parent=charter.parent,
                stage=Discussing(holder=charter.owner, until=at + charter.limits.floor_timeout),
                turn=1,
                spent=event.usage,
            )
            if not state.is_member(charter.owner):
                raise IllegalEventError(RejectionCode.NOT_A_MEMBER, f"The owner {charter.owner} is not in its own team.")
            return Transition(floor.hold_to_budget(state, at))
        case LaunchAbandoned(comm_id=comm_id, goal_id=goal_id, by=by, at=at):
            state = GroupState(
                comm_id=comm_id,
                goal_id=goal_id,
                owner=by,
                members=(),
                limits=Limits(max_turns=1, deadline=at),
                depth=0,
                parent=event.parent,
                stage=Ended(reason=event.reason, content=event.content, ended_at=at),
                turn=0,
                spent=event.usage,
            )
            return Transition(state, owed_effects(state))
        case _:
            raise IllegalEventError(RejectionCode.NO_GROUP, "No group has been launched under this comm_id.")


def _apply(state: GroupState, event: Event) -> GroupState:
    rule = _check(state, event)
    charged = budget.charge(state, event) if isinstance(event, Said) else state
    after = floor.release(floor.hold_to_budget(rule.apply(charged, event), event.at), event.at)
    if after.turn == state.turn and after == state:  # comparing all of it is dear, and a new turn is a change
        raise IllegalEventError(RejectionCode.NO_CHANGE, f"{kind_of(event)} changes nothing.")
    return folding.fold(state, monologue.after(state, after, event))


def _check(state: GroupState, event: Event) -> Rule:
    """Find the rule for an event, which is in time and from who may send it."""
    phase = state.phase
    if phase.is_terminal:
        raise IllegalEventError(RejectionCode.GROUP_ENDED, f"The group {state.comm_id} has ended ({phase}).")
    if isinstance(event, GroupLaunched | LaunchAbandoned):
        raise IllegalEventError(RejectionCode.GROUP_EXISTS, f"The group {state.comm_id} has been launched already.")
    if isinstance(event, Said | SubgroupOpened) and event.at >= state.limits.deadline:
        raise IllegalEventError(RejectionCode.TOO_LATE, f"The deadline of {state.comm_id} has passed.")
    if isinstance(event, Said):
        _check_sender(state, event)
    kind = kind_of(event)
    rule = TABLE.get((phase, kind))
    if rule is None:
        raise IllegalEventError(RejectionCode.WRONG_PHASE, f"{kind} is not legal while {phase}.")
    return rule


def _check_sender(state: GroupState, said: Said) -> None:
    header = said.message.header
    if header.comm_id != state.comm_id:
        raise IllegalEventError(RejectionCode.WRONG_GROUP, f"The message is meant for {header.comm_id}, not {state.comm_id}.")
    if not state.is_member(header.sender):
        raise IllegalEventError(RejectionCode.NOT_A_MEMBER, f"{header.sender} is no member of {state.comm_id}.")
    if isinstance(said.message.payload, TASK_REPORTS):
        return
    if header.turn != state.turn:
        why = f"Turn {header.turn} is not the current one; that is {state.turn}."
        raise IllegalEventError(RejectionCode.STALE_TURN, why)
    holder = state.floor_holder
    if holder != header.sender:
        raise IllegalEventError(RejectionCode.NOT_YOUR_FLOOR, f"{holder or 'nobody'} holds the floor, not {header.sender}.")


def _newly_owed(before: GroupState, after: GroupState, event: Event) -> tuple[Effect, ...]:
    """What the group owes now and did not owe before; a nested team that has just ended by itself is not cancelled."""
    owed = owed_effects(after)
    if not owed:
        return ()
    ended = event.subgroup if isinstance(event, SubgroupClosed) else None
    paid = {task.task_id for task in before.tasks if isinstance(task, ClosedTask)}
    return tuple(
        effect
        for effect in owed
        if not isinstance(effect, CancelSubgroup) or (effect.subgroup != ended and effect.task.task_id not in paid)
    )
