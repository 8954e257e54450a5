"""The group's finite-state machine: one table, one step function (paper, section 2.3.3).

`step` is pure and total: the same state and event give the same answer, an illegal event raises and leaves the state as it
was. What is legal when, and what follows, stands in `ioa.group.table`.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import NamedTuple

from ioa.group import budget, folding, monologue, tasks
from ioa.group.effects import AnswerSubgroup, AskParent, CancelSubgroup, Effect, owed_effects
from ioa.group.events import Event, Kind, MemberJoined, MemberLost, Said, SubgroupClosed, SubgroupOpened, kind_of, name_of
from ioa.group.floor import NOTHING_TO_WAIT_FOR
from ioa.group.policy import rules
from ioa.group.policy.hearing import audience, hides
from ioa.group.policy.offer import offer
from ioa.group.policy.view import check_floor
from ioa.group.questions import waits_for
from ioa.group.rejection import IllegalEventError, RejectionCode
from ioa.group.state import ClosedTask, GroupState
from ioa.group.table import STATE_RULES_IN, TABLE, Cell, Row, Sender
from ioa.protocol.ids import AgentId
from ioa.protocol.messages import Discussion, Phase, Thinking
from ioa.protocol.policy import Policy


class Transition(NamedTuple):
    """Where the group stands now, what has to be done about it, and the members that receive the event."""

    state: GroupState
    effects: tuple[Effect, ...] = ()
    audience: tuple[AgentId, ...] = ()


def step(state: GroupState | None, event: Event, policy: Policy | None = None) -> Transition:
    """Apply one event to a group.

    Args:
        state: The group as its last log entry left it, or None while its log is empty.
        event: What happened.
        policy: What leads the group, by its charter; None if nothing does. A launch brings its own.

    Raises:
        IllegalEventError: The event is not legal now; nothing has changed.
    """
    if state is None:
        opened = _open(event)
        return Transition(opened, owed_effects(opened), opened.hearing)
    try:
        after = _apply(state, event, policy)
    except IllegalEventError as refused:
        raise _with_way_out(refused, state, event, policy) from None
    return Transition(after, _newly_owed(state, after, event), audience(policy, state, event))


def check_said(state: GroupState, said: Said, check: Callable[[], object]) -> None:
    """Judge a message that is to be no entry: by the rules for all messages, then by what `check` says of its content.

    Raises:
        IllegalEventError: It would not be legal as an entry.
    """
    try:
        _find(state, said)
        check()
    except IllegalEventError as refused:
        raise _with_way_out(refused, state, said) from None


def legal_kinds(state: GroupState, agent_id: AgentId, at: datetime, policy: Policy | None = None) -> tuple[Kind, ...]:
    """List the kinds of message that a member could send at a time, given the right content, under the policy of the group.

    A kind that is not listed is refused, with one exception: a pause whose triggers are all closed is accepted while no task is
    open, since it may have crossed their results on the way. It is not offered, for it would only cost a turn.
    """
    phase, senders = state.phase, set[Sender]()
    if agent_id in state.floor:
        senders.add(Sender.FLOOR_HOLDER)
    for task in state.open_tasks:
        if task.assignee == agent_id:
            senders.add(Sender.ASSIGNEE)
        elif waits_for(task, agent_id, at):
            senders.add(Sender.ASSIGNER)
    offered = offer(policy, state, agent_id) if policy is not None else None

    def is_offered(row: Row) -> bool:
        by_table = row.offered(state, agent_id, at)
        if offered is None or row.sender is not Sender.FLOOR_HOLDER:
            return by_table
        return row.kind in offered.kinds and (by_table or row.kind is Discussion)

    return tuple(row.kind for row in TABLE.values() if row.sender in senders and phase in row.cells and is_offered(row))


def _with_way_out(refused: IllegalEventError, state: GroupState, event: Event, policy: Policy | None = None) -> IllegalEventError:
    """Return the same refusal, which names what the sender of a message could say instead."""
    legal = legal_kinds(state, event.message.header.sender, event.at, policy) if isinstance(event, Said) else ()
    return IllegalEventError(refused.code, refused.message, legal=tuple(map(name_of, legal)), repeats_turn=refused.repeats_turn)


def _open(event: Event) -> GroupState:
    row = TABLE[kind_of(event)]
    cell = row.cells.get(None)
    if cell is None:
        raise IllegalEventError(RejectionCode.NO_GROUP, "No group has been launched under this comm_id.")
    after = _fire(row.apply(None, event), event)
    assert after.phase in cell.leads_to, f"{row.name} began with {after.phase}, which the table does not say"
    return after


def _apply(state: GroupState, event: Event, policy: Policy | None) -> GroupState:
    if policy is not None and hides(policy) and (by := _speaker(event)) is not None:
        check_floor(policy, state, by)
    row, cell = _find(state, event)
    has_floor = row.sender is Sender.FLOOR_HOLDER
    charged = budget.charge(state, event, has_floor=has_floor) if isinstance(event, Said) else state
    if state.course is None:
        after, leads_to = row.apply(charged, event), _NOWHERE
    else:
        after, leads_to = _led(charged, event, row, policy), _LED_TO
    if after.tasks is not state.tasks:
        after = tasks.settle(after, event.at)
    if after.turn == state.turn:  # else the floor is another's now, and what could have kept it from being granted was asked
        after = _fire(after, event, policy)
        # Comparing the whole state is expensive, and what takes a turn or grants one is a change.
        if after.turn == state.turn and after.turns_taken == state.turns_taken and after == state:
            raise IllegalEventError(RejectionCode.NO_CHANGE, f"{row.name} changes nothing.")
    phase = after.phase
    assert phase in cell.leads_to or phase in leads_to, f"{row.name} led from {cell.phase} to {phase}, which the table does not say"
    return folding.fold(state, monologue.after(state, after, event))


_LED_TO = frozenset({Phase.DISCUSSING, Phase.GATHERING, Phase.DECIDING, Phase.CONCLUDING, Phase.CONCLUDED, Phase.FAILED})
"""Where a policy may lead besides, by any event that ends a turn."""

_NOWHERE = frozenset[Phase]()


def _led(state: GroupState, event: Event, row: Row, policy: Policy | None) -> GroupState:
    """Apply an event to a group that a policy leads."""
    assert state.course is not None
    if policy is None or policy.digest != state.course.policy:
        raise ValueError(f"The group {state.comm_id} was not handed the policy of its charter.")
    rule = rules.RULES.get(state.phase, {}).get(row.kind)
    if rule is not None:
        return rule(state, event, policy)
    if state.phase is Phase.DISCUSSING and row.sender is Sender.FLOOR_HOLDER and row.kind is not Thinking:
        raise IllegalEventError(RejectionCode.OFF_COURSE, f"{row.name} is nothing that the policy of this group offers.")
    return row.apply(state, event)


def _fire(state: GroupState, event: Event, policy: Policy | None = None) -> GroupState:
    """Make the transition that the state calls for, if it calls for one. Under a policy that says who goes on who has waited."""
    for rule in STATE_RULES_IN[state.phase]:
        if rule.when(state):
            if rule is NOTHING_TO_WAIT_FOR and policy is not None:
                return rules.woken(state, event.at, policy)
            return rule.apply(state, event.at)
    return state


def _speaker(event: Event) -> AgentId | None:
    """Return who brings about an event that only who has the floor may bring about; what is about a task is none."""
    match event:
        case MemberJoined(by=by):
            return by
        case Said(message=message) if TABLE[kind_of(event)].sender is Sender.FLOOR_HOLDER:
            return message.header.sender
    return None


def _find(state: GroupState, event: Event) -> tuple[Row, Cell]:
    """Find the rule for an event, which is in time and from who may send it."""
    phase, row = state.phase, TABLE[kind_of(event)]
    if phase.is_terminal:
        raise IllegalEventError(RejectionCode.GROUP_ENDED, f"The group {state.comm_id} has ended ({phase}).")
    if None in row.cells:
        raise IllegalEventError(RejectionCode.GROUP_EXISTS, f"The group {state.comm_id} has been launched already.")
    if event.at >= state.limits.deadline and isinstance(event, Said | SubgroupOpened):
        raise IllegalEventError(RejectionCode.TOO_LATE, f"The deadline of {state.comm_id} has passed.")
    if isinstance(event, Said):
        _check_sender(state, event, row)
    cell = row.cells.get(phase)
    if cell is None:
        raise IllegalEventError(RejectionCode.WRONG_PHASE, f"{row.name} is not legal while {phase}.")
    if isinstance(event, MemberLost) and any(one.human and one.agent_id == event.agent_id for one in state.members):
        raise IllegalEventError(RejectionCode.NO_CHANGE, f"{event.agent_id} is a person, and is waited for.")
    return row, cell


def _check_sender(state: GroupState, said: Said, row: Row) -> None:
    header = said.message.header
    if header.comm_id != state.comm_id:
        raise IllegalEventError(RejectionCode.WRONG_GROUP, f"The message is meant for {header.comm_id}, not {state.comm_id}.")
    if not state.is_member(header.sender):
        raise IllegalEventError(RejectionCode.NOT_A_MEMBER, f"{header.sender} is no member of {state.comm_id}.")
    if row.sender is Sender.ASSIGNER and header.sender not in state.hearing:
        raise IllegalEventError(RejectionCode.NOT_YOUR_TASK, f"{header.sender} was removed, and answers nothing that a task asks.")
    if row.sender in (Sender.ASSIGNEE, Sender.ASSIGNER):
        return
    if header.turn != state.turn:
        why = f"Turn {header.turn} is not the current one; that is {state.turn}."
        raise IllegalEventError(RejectionCode.STALE_TURN, why)
    floor = state.floor
    if header.sender not in floor:
        raise IllegalEventError(
            RejectionCode.NOT_YOUR_FLOOR, f"{', '.join(floor) or 'nobody'} holds the floor, not {header.sender}."
        )


def _newly_owed(before: GroupState, after: GroupState, event: Event) -> tuple[Effect, ...]:
    """Return what the group owes now and did not owe before; a nested team that has just ended by itself is not cancelled."""
    owed = owed_effects(after)
    if not owed:
        return ()
    if any(isinstance(effect, AskParent | AnswerSubgroup) for effect in owed):
        known = [effect for effect in owed_effects(before) if isinstance(effect, AskParent | AnswerSubgroup)]
        owed = tuple([effect for effect in owed if effect not in known])
    ended = event.subgroup if isinstance(event, SubgroupClosed) else None
    paid = {task.task_id for task in before.tasks if isinstance(task, ClosedTask)}
    return tuple(
        effect
        for effect in owed
        if not isinstance(effect, CancelSubgroup) or (effect.subgroup != ended and effect.task.task_id not in paid)
    )
