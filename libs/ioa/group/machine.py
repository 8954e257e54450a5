"""The group's finite-state machine: one table, one step function (paper, section 2.3.3).

`step` is pure and total: the same state and event give the same answer, an illegal event raises and leaves the state as it
was. A pair of phase and event that is not in `TABLE` is illegal. The documentation's diagram and table are drawn from it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ioa.group import floor, tasks
from ioa.group.effects import CancelSubgroup, Effect, settle
from ioa.group.events import (
    BudgetSpent,
    CancelRequested,
    Event,
    EventKind,
    GroupLaunched,
    LaunchAbandoned,
    MemberLost,
    MemberReturned,
    Said,
    TimerFired,
    kind_of,
)
from ioa.group.rejection import IllegalEventError, RejectionCode
from ioa.group.state import (
    ClosedTask,
    Concluding,
    Discussing,
    Ended,
    GroupState,
    Handing,
    Limits,
    Member,
    Paused,
)
from ioa.protocol.goals import Reason
from ioa.protocol.ids import AgentId
from ioa.protocol.messages import TASK_REPORTS, Conclusion, Discussion, Pause, Phase

ROUNDS_OF_SILENCE = 2
"""How often every living member may let the floor time out, in a row, before the group is given up."""


@dataclass(frozen=True)
class Transition:
    """Where the group stands now and what has to be done about it."""

    state: GroupState
    effects: tuple[Effect, ...] = ()


@dataclass(frozen=True)
class Rule:
    """One cell of the table: who decides, which phases it can lead to, and what it means."""

    apply: Callable[[GroupState, Any], GroupState]
    leads_to: frozenset[Phase]
    meaning: str


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
    if state.phase.is_terminal:
        raise IllegalEventError(RejectionCode.GROUP_ENDED, f"The group {state.comm_id} has ended ({state.phase}).")
    if isinstance(event, Said):
        _check_sender(state, event)
    rule = TABLE.get((state.phase, kind_of(event)))
    if rule is None:
        raise _refuse(state, event, RejectionCode.WRONG_PHASE, f"{kind_of(event)} is not legal while {state.phase}.")
    after = floor.release(rule.apply(state, event), event.at)
    if after == state:
        raise _refuse(state, event, RejectionCode.NO_CHANGE, f"{kind_of(event)} changes nothing.")
    return Transition(after, settle(after) or _cancelled_subgroups(state, after))


def legal_kinds(state: GroupState, agent_id: AgentId) -> tuple[str, ...]:
    """Name the kinds of message that a member could send now."""
    if state.phase.is_terminal or not state.is_member(agent_id):
        return ()
    kinds: list[str] = []
    if state.floor_holder == agent_id:
        if isinstance(state.stage, Concluding):
            kinds.append(EventKind.CONCLUSION)
        else:
            kinds += [EventKind.SYNC_TASK_ASSIGNMENT, EventKind.ASYNC_TASK_ASSIGNMENT]
            if len(state.living()) > 1:
                kinds.append(EventKind.DISCUSSION)
            kinds.append(EventKind.PAUSE if state.open_tasks else EventKind.CONCLUDE_GROUP_DISCUSSION)
    if any(task.assignee == agent_id for task in state.open_tasks):
        kinds += [EventKind.INFORM_TASK_PROGRESS, EventKind.INFORM_TASK_RESULT]
    return tuple(kinds)


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
            )
            if not state.is_member(charter.owner):
                raise IllegalEventError(RejectionCode.NOT_A_MEMBER, f"The owner {charter.owner} is not in its own team.")
            return Transition(state)
        case LaunchAbandoned(comm_id=comm_id, goal_id=goal_id, by=by, at=at):
            state = GroupState(
                comm_id=comm_id,
                goal_id=goal_id,
                owner=by,
                members=(),
                limits=Limits(max_turns=1, deadline=at),
                depth=0,
                parent=None,
                stage=Ended(reason=event.reason, content=event.content, ended_at=at),
                turn=0,
            )
            return Transition(state, settle(state))
        case _:
            raise IllegalEventError(RejectionCode.NO_GROUP, "No group has been launched under this comm_id.")


def _check_sender(state: GroupState, said: Said) -> None:
    header = said.message.header
    if not state.is_member(header.sender):
        raise _refuse(state, said, RejectionCode.NOT_A_MEMBER, f"{header.sender} is no member of {state.comm_id}.")
    if isinstance(said.message.payload, TASK_REPORTS):
        return
    if header.turn != state.turn:
        raise _refuse(
            state, said, RejectionCode.STALE_TURN, f"Turn {header.turn} is not the current one; that is {state.turn}."
        )
    if state.floor_holder != header.sender:
        holder = state.floor_holder or "nobody"
        raise _refuse(state, said, RejectionCode.NOT_YOUR_FLOOR, f"{holder} holds the floor, not {header.sender}.")


def _refuse(state: GroupState, event: Event, code: RejectionCode, message: str) -> IllegalEventError:
    legal = legal_kinds(state, event.message.header.sender) if isinstance(event, Said) else ()
    return IllegalEventError(code, message, legal=legal)


def _cancelled_subgroups(before: GroupState, after: GroupState) -> tuple[Effect, ...]:
    closed = {task.task_id: task for task in after.tasks if isinstance(task, ClosedTask)}
    return tuple(
        CancelSubgroup(task.subgroup, closed[task.task_id].why or "its task was closed")
        for task in before.open_tasks
        if task.subgroup is not None and task.task_id in closed
    )


def _discussion(state: GroupState, said: Said) -> GroupState:
    message = said.message
    assert isinstance(message.payload, Discussion)
    speaker = message.payload.next_speaker
    if speaker == message.header.sender or speaker not in state.living():
        why = f"{speaker} cannot be the next speaker: name another living member."
        raise _refuse(state, said, RejectionCode.BAD_NEXT_SPEAKER, why)
    return floor.grant(floor.take_turn(state), speaker, said.at)


def _pause(state: GroupState, said: Said) -> GroupState:
    message = said.message
    assert isinstance(message.payload, Pause)
    unknown = [task_id for task_id in message.payload.triggers if state.task(task_id) is None]
    if unknown:
        raise _refuse(state, said, RejectionCode.BAD_TRIGGER, f"No task has the id {', '.join(unknown)}.")
    stage = Paused(
        pauser=message.header.sender, triggers=message.payload.triggers, until=said.at + state.limits.pause_timeout
    )
    return floor.take_turn(state).model_copy(update={"stage": stage})


def _conclude(state: GroupState, said: Said) -> GroupState:
    if state.open_tasks:
        still_open = ", ".join(task.task_id for task in state.open_tasks)
        raise _refuse(state, said, RejectionCode.TASKS_OPEN, f"Tasks are still open: {still_open}.")
    return floor.grant_conclusion(state, said.message.header.sender, said.at, forced=None)


def _conclusion(state: GroupState, said: Said) -> GroupState:
    payload, stage = said.message.payload, state.stage
    assert isinstance(payload, Conclusion) and isinstance(stage, Concluding)
    return floor.end(state, stage.forced or payload.reason, payload.content, said.at, payload.artifacts)


def _timer_fired(state: GroupState, fired: TimerFired) -> GroupState:
    if fired.at >= state.limits.deadline:
        return floor.end(state, Reason.DEADLINE, "The deadline passed before the goal was reached.", fired.at)
    after = tasks.expire_leases(state, fired.at)
    stage = after.stage
    match stage:
        case (Discussing(holder=silent) | Concluding(speaker=silent)) if stage.until <= fired.at:
            after = _pass_on(after, silent, fired)
        case (Handing(assigner=waiter) | Paused(pauser=waiter)) if stage.until <= fired.at:
            after = floor.grant(after, waiter, fired.at)
    if after == state:
        raise IllegalEventError(RejectionCode.NOTHING_DUE, "No deadline has passed.")
    return after


def _pass_on(state: GroupState, silent: AgentId, event: TimerFired | MemberLost) -> GroupState:
    silences = state.silences + 1
    forced = state.stage.forced if isinstance(state.stage, Concluding) else None
    if silences >= ROUNDS_OF_SILENCE * len(state.members):
        return floor.end(state, forced or Reason.MEMBER_LOST, "No member of the group speaks any more.", event.at)
    speaker = floor.next_living(state, silent)
    after = state.model_copy(update={"silences": silences})
    if isinstance(state.stage, Concluding):
        return floor.grant_conclusion(after, speaker, event.at, forced=forced)
    return floor.grant(after, speaker, event.at)


def _member_lost(state: GroupState, lost: MemberLost) -> GroupState:
    if lost.agent_id not in state.living():
        return state
    after = floor.mark(state, lost.agent_id, lost=True)
    after = tasks.suspect(after, lost.agent_id, lost.at)
    if after.floor_holder == lost.agent_id and after.living():
        return _pass_on(after, lost.agent_id, lost)
    return after


def _member_returned(state: GroupState, returned: MemberReturned) -> GroupState:
    return floor.mark(state, returned.agent_id, lost=False)


def _cancel(state: GroupState, cancel: CancelRequested) -> GroupState:
    return floor.end(state, Reason.CANCELLED, cancel.why or "Cancelled on request.", cancel.at)


def _budget_spent(state: GroupState, spent: BudgetSpent) -> GroupState:
    return floor.force_conclusion(state, Reason.BUDGET, f"the {spent.what} budget is spent", spent.at)


_RUNNING = (Phase.DISCUSSING, Phase.ASSIGNED, Phase.PAUSED)
_OPEN = (*_RUNNING, Phase.CONCLUDING)
_D, _A, _P, _C, _F = Phase.DISCUSSING, Phase.ASSIGNED, Phase.PAUSED, Phase.CONCLUDING, Phase.FAILED


def _rule(apply: Callable[[GroupState, Any], GroupState], leads_to: tuple[Phase, ...], meaning: str) -> Rule:
    return Rule(apply, frozenset(leads_to), meaning)


TABLE: dict[tuple[Phase, EventKind], Rule] = {
    (_D, EventKind.DISCUSSION): _rule(_discussion, (_D, _C), "the floor goes to the next speaker"),
    (_D, EventKind.SYNC_TASK_ASSIGNMENT): _rule(
        tasks.assign, (_A,), "tasks start; the floor returns to the assigner when all are closed"
    ),
    (_D, EventKind.ASYNC_TASK_ASSIGNMENT): _rule(
        tasks.assign, (_D,), "tasks start; the floor returns to the assigner when all assignees have answered"
    ),
    (_D, EventKind.PAUSE): _rule(_pause, (_P, _D, _C), "the discussion sleeps until all triggers are closed"),
    (_D, EventKind.CONCLUDE_GROUP_DISCUSSION): _rule(_conclude, (_C,), "only a conclusion is legal from now on"),
    (_C, EventKind.CONCLUSION): _rule(_conclusion, (Phase.CONCLUDED, _F), "the group ends with its result"),
    (_C, EventKind.TIMER_FIRED): _rule(_timer_fired, (_C, _F), "a silent speaker is passed over; the deadline ends the group"),
    (_C, EventKind.MEMBER_LOST): _rule(_member_lost, (_C, _F), "a lost speaker is passed over"),
    (_D, EventKind.MEMBER_LOST): _rule(_member_lost, (_D, _C, _F), "its tasks are suspect; a lost holder is passed over"),
    (_A, EventKind.MEMBER_LOST): _rule(_member_lost, (_A,), "its tasks are suspect: one more lease, then they fail"),
    (_P, EventKind.MEMBER_LOST): _rule(_member_lost, (_P,), "its tasks are suspect: one more lease, then they fail"),
} | {
    (phase, kind): rule
    for kind, phases, rule in (
        (
            EventKind.INFORM_TASK_PROGRESS,
            _RUNNING,
            _rule(tasks.progress, (*_RUNNING, _C), "acknowledges the task and renews its lease"),
        ),
        (
            EventKind.INFORM_TASK_RESULT,
            _RUNNING,
            _rule(tasks.result, (*_RUNNING, _C), "closes the task; may return the floor to who waits for it"),
        ),
        (
            EventKind.SUBGROUP_OPENED,
            _RUNNING,
            _rule(tasks.open_subgroup, (*_RUNNING, _C), "the assignee serves its task with a nested team"),
        ),
        (
            EventKind.SUBGROUP_CLOSED,
            _RUNNING,
            _rule(tasks.close_subgroup, (*_RUNNING, _C), "the nested team's conclusion closes the task"),
        ),
        (
            EventKind.TIMER_FIRED,
            _RUNNING,
            _rule(_timer_fired, (*_RUNNING, _C, _F), "floor, lease or pause ran out: pass on, fail the task, resume"),
        ),
        (EventKind.BUDGET_SPENT, _RUNNING, _rule(_budget_spent, (_C,), "the conclusion is forced; open tasks are cancelled")),
        (EventKind.MEMBER_RETURNED, _OPEN, _rule(_member_returned, _OPEN, "the member may speak and work again")),
        (EventKind.CANCEL_REQUESTED, _OPEN, _rule(_cancel, (Phase.CANCELLED,), "the group and its nested teams end")),
    )
    for phase in phases
}
