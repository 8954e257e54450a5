"""Passing the floor on, and keeping it longer: what a member says that cannot decide now, instead of letting its time run out.

A pass takes no turn and is no silence. When all who could speak have passed since somebody spoke, it shows what the group lacks:
something to say, usable answers, or its models. The first is a conclusion's time, the second an end, and the third is waited for.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from ioa.group import floor
from ioa.group.rejection import IllegalEventError, RejectionCode
from ioa.group.state import Asking, ClosedTask, Concluding, Discussing, Gathering, GroupState, Passed, Paused
from ioa.protocol.goals import Reason
from ioa.protocol.ids import AgentId
from ioa.protocol.messages import Pass, PassCause, TaskOutcome


def pass_on(state: GroupState, holder: AgentId, passed: Pass, at: datetime) -> GroupState:
    """Note why the holder passes and give the floor to the next, or end what all of them pass in."""
    state = noted(state, holder, passed.cause, at)
    if state.forced is Reason.BUDGET and passed.cause is not PassCause.MODEL_UNAVAILABLE:  # another conclusion would cost more
        return floor.end(state, Reason.BUDGET, _what_failed(state, state.passes[-1:], (), passed), at)
    by_member = {one.agent_id: one for one in state.passes}
    willing = state.willing() or (holder,)
    if any(agent_id not in by_member for agent_id in willing):
        return floor.pass_on(state, at)
    return _after_round(state, [by_member[agent_id] for agent_id in willing], passed, at)


def prolong(state: GroupState, holder: AgentId, at: datetime) -> GroupState:
    """Let the holder keep the floor for its patience from now on.

    Raises:
        IllegalEventError: It has none, or more than half of its time is left.
    """
    until = _prolonged(state, holder, at)
    if until is None:
        why = "The floor can be kept longer in the second half of its time, by members with patience on their card."
        raise IllegalEventError(RejectionCode.NO_CHANGE, why)
    stage = state.stage
    if isinstance(stage, Gathering):
        seats = [seat.model_copy(update={"until": until}) if seat.agent_id == holder else seat for seat in stage.seats]
        return state.model_copy(update={"stage": stage.model_copy(update={"seats": tuple(seats)})})
    return state.model_copy(update={"stage": stage.model_copy(update={"until": until})})


def may_prolong(state: GroupState, holder: AgentId, at: datetime) -> bool:
    """Whether the holder may keep the floor longer now."""
    return _prolonged(state, holder, at) is not None


def _prolonged(state: GroupState, holder: AgentId, at: datetime) -> datetime | None:
    patience, stage = state.patience_of(holder), state.stage
    match stage:
        case Discussing(until=ends) | Concluding(until=ends) | Asking(until=ends):
            pass
        case Gathering(seats=seats):
            ends = next(seat.until for seat in seats if seat.agent_id == holder)
        case _:
            return None
    if patience is None or at < ends - patience / 2:
        return None
    until = min(at + patience, state.limits.deadline)
    return until if until > ends else None


def noted(state: GroupState, holder: AgentId, cause: PassCause, at: datetime) -> GroupState:
    """Note a pass; a cause that goes on counts from when the floor was granted under which it was told first."""
    before = next((one for one in state.passes if one.agent_id == holder and one.cause is cause), None)
    granted = state.stage.since if isinstance(state.stage, Discussing | Concluding | Gathering | Asking) else None
    this = before or Passed(agent_id=holder, cause=cause, since=granted or at)
    return state.model_copy(update={"passes": (*(one for one in state.passes if one.agent_id != holder), this)})


def _after_round(state: GroupState, passes: Sequence[Passed], last: Pass, at: datetime) -> GroupState:
    """Go on after everybody has passed."""
    away = [one for one in passes if one.cause is PassCause.MODEL_UNAVAILABLE]
    if away and at < max(one.since for one in away) + state.limits.model_patience:
        return floor.pass_on(state, at)
    if isinstance(state.stage, Discussing) and any(one.cause is PassCause.NOTHING_TO_ADD for one in passes):
        return _wait_or_conclude(state, state.stage.holder, at)
    reason = Reason.MODEL_UNAVAILABLE if away else Reason.FAILED
    return floor.end(state, state.forced or reason, _what_failed(state, passes, away, last), at)


def _wait_or_conclude(state: GroupState, holder: AgentId, at: datetime) -> GroupState:
    """Wait for the open tasks, which may bring something to say, or let the owner conclude."""
    triggers = tuple(task.task_id for task in state.open_tasks)
    if not triggers:
        return floor.open_conclusion(state, state.owner, at, forced=None)
    stage = Paused(pauser=holder, triggers=triggers, until=at + state.limits.pause_timeout)
    return state.model_copy(update={"stage": stage, "passes": ()})


def _what_failed(state: GroupState, passes: Sequence[Passed], away: Sequence[Passed], last: Pass) -> str:
    """Say whose models failed, since when, and what was done before."""
    told = f" The last said: {last.content}" if last.content else ""
    if away:
        since = min(one.since for one in away)
        who = ", ".join(one.agent_id for one in passes)
        why = f"No language model of the members answers: that of {who}, since {since:%Y-%m-%d %H:%M:%S} UTC."
    elif last.cause is PassCause.NO_USABLE_ANSWER:
        why = f"No member gave a usable answer: {', '.join(one.agent_id for one in passes)}."
    else:
        why = "No member states a conclusion."
    done = sum(folded.done for folded in state.folded)
    done += sum(isinstance(task, ClosedTask) and task.outcome is TaskOutcome.DONE for task in state.tasks)
    return f"{why}{told} Tasks done: {done} of {state.tasks_given}."
