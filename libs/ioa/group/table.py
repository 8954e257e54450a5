"""The group's transition table: which event is legal in which phase, and what follows (paper, section 2.3.3).

A pair of phase and event that is not in `TABLE` is illegal. The rules are pure: they read the state and the event and answer
with the next state, or refuse. The documentation's diagram and table are drawn from here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from ioa.group import floor, lacks, monologue, tasks
from ioa.group.events import (
    CancelRequested,
    EventKind,
    MemberLost,
    MemberReturned,
    RepetitionRefused,
    Said,
    TimerFired,
)
from ioa.group.rejection import IllegalEventError, RejectionCode
from ioa.group.state import AwaitingAcks, Concluding, Discussing, GroupState, Paused
from ioa.protocol.goals import Reason
from ioa.protocol.messages import Conclusion, Discussion, Pause, Phase

ROUNDS_OF_SILENCE = 2
"""The group is given up after this many floor timeouts in a row for each member; lost ones count, since they may return."""


@dataclass(frozen=True)
class Rule:
    """One cell of the table: who decides, which phases it can lead to, and what it means."""

    apply: Callable[[GroupState, Any], GroupState]
    leads_to: frozenset[Phase]
    meaning: str


def _discussion(state: GroupState, said: Said) -> GroupState:
    message = said.message
    assert isinstance(message.payload, Discussion)
    speaker = message.payload.next_speaker
    if speaker == message.header.sender or speaker not in state.reachable(said.at):
        why = f"{speaker} cannot be the next speaker: name another member that is not out of reach."
        raise IllegalEventError(RejectionCode.BAD_NEXT_SPEAKER, why)
    remarks = monologue.check_remark(state, said)
    return floor.grant(floor.take_turn(state, monologue=remarks), speaker, said.at)


def _repetition_refused(state: GroupState, refused: RepetitionRefused) -> GroupState:
    """Note the first repetition of a turn; at the next one force the way out."""
    if refused.turn != state.turn:
        raise IllegalEventError(RejectionCode.STALE_TURN, f"Turn {refused.turn} is not the current one; that is {state.turn}.")
    stage = state.stage
    if not isinstance(stage, Discussing) or stage.holder != refused.by:
        raise IllegalEventError(RejectionCode.NOT_YOUR_FLOOR, f"{refused.by} does not hold the floor.")
    if stage.repeated == refused.message_id:
        return state
    if stage.repeated is not None:
        return floor.force_way_out(state, refused.by, refused.at)
    return state.model_copy(update={"stage": stage.model_copy(update={"repeated": refused.message_id})})


def _pause(state: GroupState, said: Said) -> GroupState:
    message = said.message
    assert isinstance(message.payload, Pause)
    unknown = [task_id for task_id in message.payload.triggers if state.task(task_id) is None and not state.is_folded(task_id)]
    if unknown:
        raise IllegalEventError(RejectionCode.BAD_TRIGGER, f"No task has the id {', '.join(unknown)}.")
    until = said.at + state.limits.pause_timeout
    stage = Paused(pauser=message.header.sender, triggers=message.payload.triggers, until=until)
    return floor.take_turn(state, stage=stage)


def _conclude(state: GroupState, said: Said) -> GroupState:
    if state.open_tasks:
        still_open = ", ".join(task.task_id for task in state.open_tasks)
        raise IllegalEventError(RejectionCode.TASKS_OPEN, f"Tasks are still open: {still_open}.")
    return floor.open_conclusion(state, said.message.header.sender, said.at, forced=None)


def _conclusion(state: GroupState, said: Said) -> GroupState:
    payload, stage = said.message.payload, state.stage
    assert isinstance(payload, Conclusion) and isinstance(stage, Concluding)
    degraded = lacks.of_conclusion(state)
    return floor.end(state, stage.forced or payload.reason, payload.content, said.at, payload.artifacts, degraded)


def _timer_fired(state: GroupState, fired: TimerFired) -> GroupState:
    if fired.at >= state.limits.deadline:
        return floor.end(state, Reason.DEADLINE, "The deadline passed before the goal was reached.", fired.at)
    heard = tasks.hear(state, fired)
    after = tasks.expire_leases(tasks.expire_deadlines(heard, fired.at), fired.at)
    match after.stage:
        case Discussing(until=until) | Concluding(until=until) if until <= fired.at:
            after = _pass_over_silent_holder(after, fired.at)
        case AwaitingAcks(assigner=waiter, until=until) | Paused(pauser=waiter, until=until) if until <= fired.at:
            after = floor.give_back(after, waiter, fired.at)
    if after is state:
        raise IllegalEventError(RejectionCode.NOTHING_DUE, "No deadline has passed.")
    return after


def _pass_over_silent_holder(state: GroupState, at: datetime) -> GroupState:
    silences = state.silences + 1
    if silences >= ROUNDS_OF_SILENCE * len(state.members):
        forced = state.stage.forced if isinstance(state.stage, Concluding) else None
        return floor.end(state, forced or Reason.MEMBER_LOST, "No member of the group speaks any more.", at)
    return floor.pass_on(state.model_copy(update={"silences": silences}), at)


def _member_lost(state: GroupState, lost: MemberLost) -> GroupState:
    if lost.agent_id not in state.living():
        return state
    after = tasks.suspect(floor.mark_lost(state, lost.agent_id, lost.at), lost.agent_id, lost.at)
    # No silence is counted: a lost holder never declined to speak.
    return floor.pass_on(after, lost.at) if state.floor_holder == lost.agent_id and after.living() else after


def _member_returned(state: GroupState, returned: MemberReturned) -> GroupState:
    """Count a member among the living; the first of them takes the floor from a lost holder, which others could not be given it."""
    if returned.agent_id in state.living():
        return state
    after = floor.mark_living(state, returned.agent_id)
    left_alone = not state.living() and state.floor_holder not in (None, returned.agent_id)
    return floor.pass_on(after, returned.at) if left_alone else after


def _cancel(state: GroupState, cancel: CancelRequested) -> GroupState:
    return floor.end(state, Reason.CANCELLED, cancel.why or "Cancelled on request.", cancel.at)


_D, _A, _P, _C = Phase.DISCUSSING, Phase.ASSIGNED, Phase.PAUSED, Phase.CONCLUDING
_CONCLUDED, _FAILED, _CANCELLED = Phase.CONCLUDED, Phase.FAILED, Phase.CANCELLED

_Cell = tuple[Phase, tuple[Phase, ...], str]


def _row(kind: EventKind, apply: Callable[[GroupState, Any], GroupState], *cells: _Cell) -> dict[tuple[Phase, EventKind], Rule]:
    """One event: the phases it is legal in, each with where it can lead and what it means there."""
    return {(phase, kind): Rule(apply, frozenset(leads_to), meaning) for phase, leads_to, meaning in cells}


TABLE: dict[tuple[Phase, EventKind], Rule] = {
    **_row(
        EventKind.DISCUSSION,
        _discussion,
        (_D, (_D, _C), "the floor goes to the next speaker, who may be lost for less than a floor timeout"),
    ),
    **_row(
        EventKind.SYNC_TASK_ASSIGNMENT,
        tasks.assign,
        (_D, (_A, _C), "the tasks start; the floor returns to the assigner when all of them are closed"),
    ),
    **_row(
        EventKind.ASYNC_TASK_ASSIGNMENT,
        tasks.assign,
        (_D, (_D, _C), "the tasks start; the floor returns to the assigner when all assignees have answered"),
    ),
    **_row(
        EventKind.INFORM_TASK_PROGRESS,
        tasks.progress,
        (_D, (_D, _C), "acknowledges the task and renews its lease; the last answer awaited returns the floor"),
        (_A, (_A, _C), "acknowledges the task and renews its lease"),
        (_P, (_P, _C), "acknowledges the task and renews its lease"),
    ),
    **_row(
        EventKind.INFORM_TASK_RESULT,
        tasks.result,
        (_D, (_D, _C), "closes the task; the last answer awaited returns the floor"),
        (_A, (_A, _D, _C), "closes the task; the last one returns the floor to the assigner"),
        (_P, (_P, _D, _C), "closes the task; the last trigger returns the floor to the pauser"),
    ),
    **_row(
        EventKind.PAUSE,
        _pause,
        (_D, (_P, _D, _C), "the discussion sleeps until all triggers are closed; at once if they are"),
    ),
    **_row(
        EventKind.CONCLUDE_GROUP_DISCUSSION,
        _conclude,
        (_D, (_C,), "with no task open: only the speaker's conclusion is legal from now on"),
    ),
    **_row(
        EventKind.CONCLUSION,
        _conclusion,
        (_C, (_CONCLUDED, _FAILED), "the group ends with its result; a forced conclusion is a failure with an answer"),
    ),
    **_row(
        EventKind.TIMER_FIRED,
        _timer_fired,
        (_D, (_D, _C, _FAILED), "a silent holder is passed over; unanswered assignments free the floor; leases run out"),
        (_A, (_A, _D, _C, _FAILED), "leases run out; when the last task has failed the floor returns to the assigner"),
        (_P, (_P, _D, _C, _FAILED), "leases run out; the pause ends and the floor returns to the pauser"),
        (_C, (_C, _FAILED), "a silent speaker is passed over: the next member concludes"),
    ),
    **_row(
        EventKind.MEMBER_LOST,
        _member_lost,
        (_D, (_D,), "its tasks are suspect; a holder that is lost is passed over"),
        (_A, (_A,), "its tasks are suspect: they fail when their lease runs out"),
        (_P, (_P,), "its tasks are suspect: they fail when their lease runs out"),
        (_C, (_C,), "a lost speaker is passed over"),
    ),
    **_row(
        EventKind.MEMBER_RETURNED,
        _member_returned,
        (_D, (_D,), "the member may speak and work again; the floor is its own if everybody else is lost"),
        (_A, (_A,), "the member may speak and work again"),
        (_P, (_P,), "the member may speak and work again"),
        (_C, (_C,), "the member may speak again; it concludes if everybody else is lost"),
    ),
    **_row(
        EventKind.CANCEL_REQUESTED,
        _cancel,
        *((phase, (_CANCELLED,), "the group ends; its open tasks and nested teams are cancelled") for phase in (_D, _A, _P, _C)),
    ),
    **_row(
        EventKind.REPETITION_REFUSED,
        _repetition_refused,
        (
            _D,
            (_D, _P, _C),
            "the first of a turn is noted; at the next one the speaker waits for open tasks, or the owner concludes",
        ),
    ),
    **_row(
        EventKind.SUBGROUP_OPENED,
        tasks.open_subgroup,
        (
            _D,
            (_D,),
            "the assignee serves its task with a nested team, on a share of the budget; that answers the assignment too",
        ),
        (_A, (_A,), "the assignee serves its task with a nested team, on a share of the budget"),
        (_P, (_P,), "the assignee serves its task with a nested team, on a share of the budget"),
    ),
    **_row(
        EventKind.SUBGROUP_CLOSED,
        tasks.close_subgroup,
        (_D, (_D, _C), "the nested team's conclusion closes the task; what it has used up is counted"),
        (_A, (_A, _D, _C), "the nested team's conclusion closes the task; the last one returns the floor to the assigner"),
        (_P, (_P, _D, _C), "the nested team's conclusion closes the task; the last trigger returns the floor to the pauser"),
        (_C, (_C,), "what a team has used up whose task is closed already is counted"),
    ),
}
