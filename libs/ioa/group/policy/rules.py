"""What events mean in the discussion of a group under a policy, in the place of the table's own rules."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

from ioa.group import floor, monologue, passing, tasks
from ioa.group.events import Kind, MemberLost, MemberReturned, RepetitionRefused, Said, TimerFired
from ioa.group.policy.casting import scene_of
from ioa.group.policy.course import counted, grant_again, pass_over, proceed
from ioa.group.policy.offer import check_discussion, check_end, offer, offer_in
from ioa.group.rejection import IllegalEventError, RejectionCode
from ioa.group.state import Discussing, GroupState
from ioa.protocol.goals import Reason
from ioa.protocol.messages import ConcludeGroupDiscussion, Discussion, Pass, PassCause, rejects_of
from ioa.protocol.policy import Policy

PolicyRule = Callable[[GroupState, Any, Policy], GroupState]


def _discussion(state: GroupState, said: Said, policy: Policy) -> GroupState:
    payload, sender = said.message.payload, said.message.header.sender
    assert isinstance(payload, Discussion) and state.course is not None
    scene = scene_of(policy, state, state.course)
    offered = offer_in(scene, state, sender)
    check_discussion(offered, payload)
    tasks.reject(state, payload.rejects)
    is_free = offered.say is None and scene.node.turns.mode != "hub"
    remarks = monologue.check_remark(state, said) if is_free else None
    named = None if payload.next_speaker is None else state.number_of(payload.next_speaker)
    changed = {**floor.turn_taken(state), "monologue": remarks}
    after = scene.after(state, counted(state, policy))
    return proceed(state, after, said.at, changed, go=payload.go, named=named, words=payload.content)


def _end(state: GroupState, said: Said, policy: Policy) -> GroupState:
    payload, sender = said.message.payload, said.message.header.sender
    assert isinstance(payload, ConcludeGroupDiscussion)
    offered = offer(policy, state, sender)
    assert offered is not None, "the machine has asked whose floor it is"
    check_end(offered, payload)
    tasks.reject(state, rejects_of(payload))
    if payload.conclusion is None:
        return floor.open_conclusion(state, floor.concluder(state), said.at, forced=None)
    conclusion = payload.conclusion
    return floor.end(state, conclusion.reason, conclusion.content, said.at, conclusion.artifacts)


def _pass(state: GroupState, said: Said, policy: Policy) -> GroupState:
    """Take a pass for a silent turn; a member whose model is away is waited for first, since nobody decides in its place."""
    payload, sender = said.message.payload, said.message.header.sender
    assert isinstance(payload, Pass)
    noted = passing.noted(state, sender, payload.cause, said.at)
    if payload.cause is not PassCause.MODEL_UNAVAILABLE:
        return _silent(noted, policy, said.at, Reason.NO_SPEAKER)
    since = next(one.since for one in noted.passes if one.agent_id == sender)
    if said.at < since + state.limits.model_patience:
        return grant_again(noted, policy, said.at)
    return _silent(noted, policy, said.at, Reason.MODEL_UNAVAILABLE)


def _silent(state: GroupState, policy: Policy, at: datetime, reason: Reason) -> GroupState:
    """Count a turn in which nothing was said, and go on, or give the group up."""
    silences = state.silences + 1
    if policy.silent == "end" or silences >= floor.ROUNDS_OF_SILENCE * len(state.members):
        holder = state.floor_holder
        why = f"{holder} said nothing." if policy.silent == "end" else f"Nobody speaks: {silences} turns in a row were silent."
        return floor.end(state, reason, why, at)
    scene = scene_of(policy, state, counted(state, policy))
    return proceed(state, scene, at, {"silences": silences})


def _repetition_refused(state: GroupState, refused: RepetitionRefused, policy: Policy) -> GroupState:
    """Note the first repetition of a turn; the next one passes it."""
    noted = floor.note_repetition(state, refused.by, refused.turn, refused.message_id)
    return _silent(state, policy, refused.at, Reason.NO_SPEAKER) if noted is None else noted


def _timer_fired(state: GroupState, fired: TimerFired, policy: Policy) -> GroupState:
    if fired.at >= state.limits.deadline:
        return floor.end(state, Reason.DEADLINE, "The deadline passed before the goal was reached.", fired.at)
    assert isinstance(state.stage, Discussing)
    if fired.at < state.stage.until:
        raise IllegalEventError(RejectionCode.NOTHING_DUE, "No deadline has passed.")
    return _silent(state, policy, fired.at, Reason.NO_SPEAKER)


def _member_lost(state: GroupState, lost: MemberLost, policy: Policy) -> GroupState:
    if lost.agent_id not in state.living():
        return state
    after = floor.mark_lost(state, lost.agent_id, lost.at)
    return pass_over(after, policy, lost.at) if state.floor_holder == lost.agent_id else after


def _member_returned(state: GroupState, returned: MemberReturned, policy: Policy) -> GroupState:
    """Count a member among the living; if a lost one has kept the floor, since nobody was present, it goes to who is now."""
    if returned.agent_id in state.living() or not state.is_member(returned.agent_id):
        return state
    after = floor.mark_living(state, returned.agent_id)
    return after if _holder_lives(after) else pass_over(after, policy, returned.at)


def _holder_lives(state: GroupState) -> bool:
    return state.floor_holder in state.living()


DISCUSSING: Mapping[Kind, PolicyRule] = {
    Discussion: _discussion,
    ConcludeGroupDiscussion: _end,
    Pass: _pass,
    RepetitionRefused: _repetition_refused,
    TimerFired: _timer_fired,
    MemberLost: _member_lost,
    MemberReturned: _member_returned,
}
"""The rules that hold while a policy leads. What else a floor holder may say in a free group is off course; all other events mean
the same as in one."""
