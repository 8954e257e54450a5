"""What events mean in a group that a policy leads, in place of the rules of the table."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any

from ioa.group import floor, forms, gathering, monologue, passing, questions, tasks
from ioa.group.events import (
    Kind,
    MemberJoined,
    MemberLost,
    MemberReturned,
    MessageRefused,
    QuestionAnswered,
    RepetitionRefused,
    Said,
    TimerFired,
)
from ioa.group.joining import join_in_role
from ioa.group.policy.casting import Scene, scene_of
from ioa.group.policy.course import (
    ask,
    back_to_hub,
    begin_anew,
    conclude,
    count_turn,
    finish,
    gather,
    go_on,
    grant_again,
    leave,
    let_speak,
    pass_over,
    proceed,
    removed,
    return_draft,
    return_floor,
)
from ioa.group.policy.hearing import told_of_tasks
from ioa.group.policy.offer import (
    Offer,
    check_content,
    check_discussion,
    check_end,
    check_nothing_left,
    offer,
    offer_in,
)
from ioa.group.policy.review import PASS, REJECT, check_guards, drafted
from ioa.group.policy.watching import check_step, steps_in, watching
from ioa.group.policy.ways_out import way_out
from ioa.group.rejection import IllegalEventError, RejectionCode
from ioa.group.state import Asking, Assigned, Awaiting, AwaitingAcks, Discussing, Gathering, GroupState, Next, Paused, Watch
from ioa.protocol.goals import Reason
from ioa.protocol.ids import AgentId
from ioa.protocol.messages import (
    AskUser,
    AsyncTaskAssignment,
    ConcludeGroupDiscussion,
    Decision,
    Discussion,
    Pass,
    PassCause,
    Pause,
    Phase,
    RejectedTask,
    SyncTaskAssignment,
    rejects_of,
)
from ioa.protocol.policy import END, NOTHING, STAY, Policy

PolicyRule = Callable[[GroupState, Any, Policy], GroupState]


def _discussion(state: GroupState, said: Said, policy: Policy) -> GroupState:
    """Take a message of the floor holder: a draft is reviewed, other messages lead on."""
    payload, sender = said.message.payload, said.message.header.sender
    assert isinstance(payload, Discussion)
    scene = scene_of(policy, state)
    offered, node = offer_in(scene, sender, narrows=bool(payload.to)), scene.node
    if payload.go == END:
        check_nothing_left(scene, sender)
    check_discussion(offered, payload)
    state = _reject(state, offered, payload.rejects, sender)
    number = state.number_of(sender)
    if offered.reviewed:
        scene = scene._replace(state=floor.take_turn(state, monologue=None))
        scene = scene.with_course(draft=drafted(node, scene.course, number, payload))
        return ask(scene, said.at, "review", (PASS, REJECT), REJECT) or _rejected_for_good(scene, said.at)
    is_free = offered.say is None and node.turns.mode != "hub" and not node.form and not node.writes and node.review is None
    state = floor.take_turn(state, monologue=monologue.check_remark(state, said) if is_free else None)
    scene = scene_of(policy, count_turn(state, policy, sender, payload.fields, payload.writes))
    names = payload.next_speakers or (() if payload.next_speaker is None else (payload.next_speaker,))
    then = Next(payload.go, tuple(map(state.number_of, names)), bool(payload.next_speakers), payload.question)
    if due := watching(policy, scene.course, state.members[number], state.turns_taken):
        return _ask_watchers(scene, said.at, due, then)
    return _go_on_after(scene, said.at, then, payload.content)


def _go_on_after(scene: Scene, at: datetime, then: Next, words: str | None) -> GroupState:
    """Go on as a message has chosen; named members that are no longer present are left out."""
    named = [number for number in then.named if number in scene.present]
    last = scene.course.last
    if then.several and named and last is not None and way_out(scene, None) is None:
        votes = forms.no_votes(scene.state.turn + 1, scene.agent(last), then.question)
        return gather(scene, named, at, votes=votes, form=then.question)
    one = None if then.several or not named else named[0]
    if then.named and not named:
        one = back_to_hub(scene)
    return proceed(scene, at, go=then.go, named=one, words=words, gathered=then.gathered)


def _ask_watchers(scene: Scene, at: datetime, due: Sequence[int], then: Next) -> GroupState:
    """Ask the first of some watchers that is present and has an option; after the last one the group goes on."""
    for place, number in enumerate(due):
        watched = scene.with_course(watch=Watch(due=tuple(due[place:]), then=then))
        options = (NOTHING, *steps_in(scene.policy.watchers[number], scene))
        if len(options) > 1 and (asked := ask(watched, at, "watch", options, NOTHING)):
            return asked
    return _go_on_after(scene.with_course(watch=None), at, then, None)


def _watched(scene: Scene, choice: str, members: Sequence[AgentId], at: datetime) -> GroupState:
    """Do what a watcher has chosen, and ask the next one."""
    watch = scene.course.watch
    assert watch is not None
    if choice == "end":
        return finish(scene, at)
    if choice in scene.policy.node_numbers:
        return begin_anew(scene, choice, at)
    if choice == "remove":
        gone = [scene.state.number_of(agent) for agent in members]
        told = tuple([tuple([one for one in field if one[0] not in gone]) for field in scene.course.told])
        scene = scene_of(scene.policy, removed(scene.state, gone)).with_course(told=told)
    return _ask_watchers(scene, at, watch.due[1:], watch.then)


def _reviewed(scene: Scene, verdict: str, at: datetime) -> GroupState:
    """Let the author send the passed draft again, or another draft, as long as it has tries left."""
    draft = scene.course.draft
    assert draft is not None
    if verdict == REJECT and draft.tries <= 1:
        return _rejected_for_good(scene, at)
    known = {"passed": True} if verdict == PASS else {"tries": draft.tries - 1}
    return return_draft(scene.with_course(draft=draft.model_copy(update=known)), at)


def _rejected_for_good(scene: Scene, at: datetime) -> GroupState:
    """Apply the review's rule for the case that no draft is accepted."""
    draft, review, policy = scene.course.draft, scene.node.review, scene.policy
    assert draft is not None and review is not None
    author = scene.agent(draft.by)
    if review.then == "pass":
        return return_draft(scene.with_course(draft=draft.model_copy(update={"passed": True})), at)
    if review.then == "end":
        speaker = "is said" if policy.secrets else f"{author} says"
        return floor.end(scene.state, Reason.REFUSED, f"Nothing that {speaker} in {scene.node.name} is passed by {review.by}.", at)
    return proceed(scene_of(policy, count_turn(scene.state, policy, author)), at)


def _assign(state: GroupState, said: Said, policy: Policy) -> GroupState:
    """Assign tasks where the node permits it, which is no turn of the node."""
    payload, sender = said.message.payload, said.message.header.sender
    assert isinstance(payload, SyncTaskAssignment | AsyncTaskAssignment)
    words = [payload.content, *(text for one in payload.tasks for text in (one.task_desc, one.task_abstract))]
    offered = _check_permitted(state, said, policy, "tasks", words)
    state = _reject(state, offered, payload.rejects, sender)
    told = told_of_tasks(policy, state, said.message)
    scoped = policy.hides and len(told) < len(state.members)
    return tasks.assign(state, said, payload, tuple(map(state.number_of, told)) if scoped else ())


def _pause(state: GroupState, said: Said, policy: Policy) -> GroupState:
    """Wait for tasks where the node permits it, which is no turn of the node."""
    payload = said.message.payload
    assert isinstance(payload, Pause)
    offered = _check_permitted(state, said, policy, "tasks", [payload.content])
    return tasks.pause(_reject(state, offered, payload.rejects, said.message.header.sender), said, payload)


def _ask_user(state: GroupState, said: Said, policy: Policy) -> GroupState:
    """Ask the user where the node permits it, which is no turn of the node."""
    payload = said.message.payload
    assert isinstance(payload, AskUser)
    _check_permitted(state, said, policy, "asks", [payload.text, *payload.options, payload.default])
    return questions.ask(state, said, payload)


_NOT_PERMITTED = {
    "tasks": "Nobody gives out tasks here, or waits for any: the node lacks `tasks`.",
    "asks": "Nobody asks out of the group here: the node lacks `asks`.",
}


def _check_permitted(state: GroupState, said: Said, policy: Policy, what: str, texts: Sequence[str]) -> Offer:
    offered = offer(policy, state, said.message.header.sender)
    assert offered is not None, "the machine has checked the floor"
    if not getattr(offered, what):
        raise IllegalEventError(RejectionCode.OFF_COURSE, _NOT_PERMITTED[what])
    for words in filter(None, texts):
        check_guards(offered.guards, words)
    return offered


def _reject(
    state: GroupState, offered: Offer, rejects: Sequence[RejectedTask], sender: AgentId, *, concludes: bool = False
) -> GroupState:
    """Reject results, where tasks are assigned or with the conclusion, in words that the guards accept."""
    if rejects and not offered.lets_reject(concludes=concludes):
        why = "No result is rejected here: the node lacks `tasks`. Say what is wrong with it."
        raise IllegalEventError(RejectionCode.OFF_COURSE, why)
    for one in rejects:
        check_guards(offered.guards, one.why)
    return tasks.reject(state, rejects, sender)


def woken(state: GroupState, at: datetime, policy: Policy) -> GroupState:
    """Return the floor to the member that assigned tasks or waited for tasks, when none of them is open."""
    match state.stage:
        case Assigned(assigner=waiter) | AwaitingAcks(assigner=waiter) | Paused(pauser=waiter):
            return _waiter_goes_on(state, waiter, at, policy)
    raise AssertionError(f"nobody waits while {state.phase}")


def _question_answered(state: GroupState, answered: QuestionAnswered, policy: Policy) -> GroupState:
    if answered.task_id is not None:
        return questions.answer(state, answered)
    return _waiter_goes_on(state, questions.asker_of(state, answered), answered.at, policy)


def _waiter_goes_on(state: GroupState, waiter: AgentId, at: datetime, policy: Policy) -> GroupState:
    """Return the floor to a member that waited; if it is not present and another member is, its turn is silent."""
    if after := return_floor(scene_of(policy, state), state.number_of(waiter), at):
        return after
    counted = count_turn(state, policy, waiter).model_copy(update={"silences": state.silences + 1})
    return proceed(scene_of(policy, counted), at)


def _joined(state: GroupState, joined: MemberJoined, policy: Policy) -> GroupState:
    """Add an invited member; all members hear the reason, so the guards of the node check it."""
    after = join_in_role(state, joined, policy)
    assert state.course is not None
    if joined.why:
        check_guards(policy.nodes[state.course.node].guards, joined.why)
    return after


def _added(state: GroupState, joined: MemberJoined, policy: Policy) -> GroupState:
    """Add the member that a watcher invites, which is its decision, and ask the next watcher."""
    scene = scene_of(policy, _joined(state, joined, policy))
    watch = scene.course.watch
    assert watch is not None
    return _ask_watchers(scene, joined.at, watch.due[1:], watch.then)


def _end(state: GroupState, said: Said, policy: Policy) -> GroupState:
    """End the discussion, where the floor holder may choose the end, perhaps with its conclusion."""
    payload, sender = said.message.payload, said.message.header.sender
    assert isinstance(payload, ConcludeGroupDiscussion)
    scene = scene_of(policy, state)
    check_nothing_left(scene, sender)
    offered = offer_in(scene, sender)
    check_end(offered, payload)
    state = _reject(state, offered, rejects_of(payload), sender, concludes=payload.conclusion is not None)
    if (conclusion := payload.conclusion) is None:
        return conclude(state, said.at)
    return floor.end(state, conclusion.reason, conclusion.content, said.at, conclusion.artifacts)


def _pass(state: GroupState, said: Said, policy: Policy) -> GroupState:
    """Count a pass as a silent turn, or let the default count; a member whose model is unavailable is waited for some time."""
    payload, sender = said.message.payload, said.message.header.sender
    assert isinstance(payload, Pass)
    noted = passing.noted(state, sender, payload.cause, said.at)
    is_away = payload.cause is PassCause.MODEL_UNAVAILABLE
    since = next(one.since for one in noted.passes if one.agent_id == sender)
    waits = is_away and said.at < since + state.limits.model_patience
    reason = Reason.MODEL_UNAVAILABLE if is_away else Reason.NO_SPEAKER
    match state.stage:
        case Gathering() as stage if waits:
            left = gathering.without(stage, (sender,)).model_copy(update={"away": (*stage.away, sender)})
            return _gathered(noted.model_copy(update={"stage": left}), policy, said.at, None)
        case Gathering():
            return _seats_silent(noted, (sender,), policy, said.at, reason)
        case Asking(default=default):
            return _asked_anew(noted, policy, said.at) if waits else _decided(noted, default, policy, said.at)
        case _:
            return grant_again(scene_of(policy, noted), said.at) if waits else _silent(noted, policy, said.at, reason)


def _silent(state: GroupState, policy: Policy, at: datetime, reason: Reason) -> GroupState:
    """Count a silent turn and go on, or end the group."""
    holder = state.floor_holder
    assert holder is not None
    silences = state.silences + 1
    if why := _given_up(state, policy, silences, (holder,)):
        return floor.end(state, reason, why, at)
    counted = count_turn(state, policy, holder).model_copy(update={"silences": silences})
    return proceed(scene_of(policy, counted), at)


def _given_up(state: GroupState, policy: Policy, silences: int, silent: Sequence[AgentId]) -> str:
    """Return why silence ends the group; empty if it goes on."""
    if policy.silent == "end":
        return "Somebody said nothing." if policy.secrets else f"{', '.join(silent)} said nothing."
    is_over = silences >= floor.ROUNDS_OF_SILENCE * len(state.members)
    return f"Nobody speaks: {silences} turns in a row were silent." if is_over else ""


def _repetition_refused(state: GroupState, refused: RepetitionRefused, policy: Policy) -> GroupState:
    """Note the first repetition of a turn; the next one makes the turn silent."""
    noted = floor.note_repetition(state, refused.by, refused.turn, refused.message_id)
    return _silent(state, policy, refused.at, Reason.NO_SPEAKER) if noted is None else noted


def _timer_fired(state: GroupState, fired: TimerFired, policy: Policy) -> GroupState:
    """End the group at its deadline, or go on without the members whose time is up."""
    if fired.at >= state.limits.deadline:
        return floor.end_at_deadline(state, fired.at)
    after = questions.run_out(state, fired)
    match after.stage:
        case Discussing(until=until) if until <= fired.at:
            return _silent(after, policy, fired.at, Reason.NO_SPEAKER)
        case Gathering() as stage if silent := gathering.overdue(stage, fired.at):
            return _seats_silent(after, silent, policy, fired.at)
        case Asking(until=until, default=default) if until <= fired.at:
            return _decided(after, default, policy, fired.at)
        case (
            AwaitingAcks(assigner=waiter, until=until) | Paused(pauser=waiter, until=until) | Awaiting(asker=waiter, until=until)
        ) if until <= fired.at:
            return _waiter_goes_on(after, waiter, fired.at, policy)
    if after is state:
        raise IllegalEventError(RejectionCode.NOTHING_DUE, "No deadline has passed.")
    return after


def _member_lost(state: GroupState, lost: MemberLost, policy: Policy) -> GroupState:
    """Mark a member as lost and suspect its tasks; its floor, seat or decision goes to another member, uncounted."""
    if lost.agent_id not in state.living():
        return state
    after = tasks.suspect(floor.mark_lost(state, lost.agent_id, lost.at), lost.agent_id, lost.at)
    if lost.agent_id not in state.floor:
        return after
    match after.stage:
        case Gathering() as stage:
            if len(stage.seats) == 1 and not scene_of(policy, after).present:
                return after  # it may come back
            left = gathering.silenced(stage, (lost.agent_id,))
            return _gathered(after.model_copy(update={"stage": left}), policy, lost.at, None)
        case Asking():
            return _asked_anew(after, policy, lost.at)
        case _:
            return pass_over(scene_of(policy, after), lost.at)


def _member_returned(state: GroupState, returned: MemberReturned, policy: Policy) -> GroupState:
    """Mark a member as living; if a lost member still has the floor, since no member was present, a present member receives it."""
    if returned.agent_id in state.living() or not state.is_member(returned.agent_id):
        return state
    after = floor.mark_living(state, returned.agent_id)
    if state.phase is not Phase.DISCUSSING or after.floor_holder in after.living():
        return after
    return pass_over(scene_of(policy, after), returned.at)


def _answer(state: GroupState, said: Said, policy: Policy) -> GroupState:
    """Take the message of a member that speaks in parallel with others."""
    payload, sender, stage = said.message.payload, said.message.header.sender, state.stage
    assert isinstance(payload, Discussion) and isinstance(stage, Gathering)
    offered = offer(policy, state, sender, narrows=bool(payload.to))
    assert offered is not None, "the machine has checked the seat"
    gathering.check_answer(payload)
    check_content(offered, payload)
    left = gathering.without(gathering.counted(stage, payload), (sender,))
    state = floor.take_turn(_reject(state, offered, payload.rejects, sender), monologue=None, stage=left)
    scene = scene_of(policy, count_turn(state, policy, sender, {} if stage.form else payload.fields, payload.writes))
    if due := watching(policy, scene.course, state.members[state.number_of(sender)], state.turns_taken):
        known = due if scene.course.watch is None else sorted({*scene.course.watch.due, *due})
        scene = scene.with_course(watch=Watch(due=tuple(known), then=Next(gathered=True)))
    return _gathered(scene.state, policy, said.at, payload.content)


def _seats_silent(
    state: GroupState, silent: Sequence[AgentId], policy: Policy, at: datetime, reason: Reason = Reason.NO_SPEAKER
) -> GroupState:
    """Count the silent turns of seats and close them, or end the group."""
    assert isinstance(state.stage, Gathering)
    silences = state.silences + len(silent)
    if why := _given_up(state, policy, silences, silent):
        return floor.end(state, reason, why, at)
    after = state.model_copy(update={"silences": silences, "stage": gathering.silenced(state.stage, silent)})
    for agent in silent:
        after = count_turn(after, policy, agent)
    return _gathered(after, policy, at, None)


def _gathered(state: GroupState, policy: Policy, at: datetime, words: str | None) -> GroupState:
    """Go on when all seats are closed; members whose models were unavailable are asked again first."""
    stage = state.stage
    assert isinstance(stage, Gathering)
    if stage.seats:
        return state
    scene = scene_of(policy, state)
    if again := [number for number in scene.present if scene.agent(number) in stage.away]:
        votes = stage.votes and stage.votes.model_copy(update={"turn": state.turn + 1})
        anew = gather(scene, again, at, votes=votes, form=stage.form)
        if isinstance(anew.stage, Gathering) and policy.is_scoped:
            return anew.model_copy(update={"stage": anew.stage.model_copy(update={"begun": stage.begun or state.turn})})
        return anew
    if stage.votes is not None:
        scene = scene._replace(state=state.model_copy(update={"tally": stage.votes}))
    if (watch := scene.course.watch) is not None:
        return _ask_watchers(scene, at, watch.due, watch.then)
    return proceed(scene, at, named=back_to_hub(scene), words=words, gathered=True)


def _decision(state: GroupState, said: Said, policy: Policy) -> GroupState:
    payload, stage = said.message.payload, state.stage
    assert isinstance(payload, Decision) and isinstance(stage, Asking)
    if payload.choice not in stage.options:
        why = f"{payload.choice!r} is none of the options: {', '.join(stage.options)}."
        raise IllegalEventError(RejectionCode.BAD_DECISION, why)
    check_step(state, stage, payload)
    return _decided(state, payload.choice, policy, said.at, payload.members)


def _decided(state: GroupState, choice: str, policy: Policy, at: datetime, members: Sequence[AgentId] = ()) -> GroupState:
    """Apply the decision."""
    stage, scene = state.stage, scene_of(policy, state)
    assert isinstance(stage, Asking)
    named = scene.course.nominated
    if named is not None:
        scene = scene.with_course(nominated=None)
    match stage.about:
        case "watch":
            return _watched(scene, choice, members, at)
        case "review":
            return _reviewed(scene, choice, at)
        case "speaker":
            return let_speak(scene, state.number_of(AgentId(choice)), at)
        case "exit" if choice == STAY:
            return go_on(scene, at, named=named if named is None or named in scene.present else back_to_hub(scene))
        case "exit":
            return leave(scene, next(way for way in scene.node.exits if way.judge is not None and way.to == choice), at)


def _decision_refused(state: GroupState, refused: MessageRefused, policy: Policy) -> GroupState:
    """Count an invalid decision; after the last one the default counts."""
    stage = state.stage
    assert isinstance(stage, Asking)
    if refused.turn != state.turn:
        raise IllegalEventError(RejectionCode.STALE_TURN, f"Turn {refused.turn} is not the current one; that is {state.turn}.")
    if refused.by != stage.asked:
        raise IllegalEventError(RejectionCode.NOT_YOUR_FLOOR, f"{refused.by} is not asked.")
    if stage.refused == refused.message_id:
        return state
    if stage.tries <= 1:
        return _decided(state, stage.default, policy, refused.at)
    left = stage.model_copy(update={"tries": stage.tries - 1, "refused": refused.message_id})
    return state.model_copy(update={"stage": left})


def _asked_anew(state: GroupState, policy: Policy, at: datetime) -> GroupState:
    """Ask a present holder of the role again; without one the default counts."""
    stage = state.stage
    assert isinstance(stage, Asking)
    asked = ask(scene_of(policy, state), at, stage.about, stage.options, stage.default, stage.tries)
    return _decided(state, stage.default, policy, at) if asked is None else asked


_IN_DISCUSSION: Mapping[Kind, PolicyRule] = {
    Pass: _pass,
    TimerFired: _timer_fired,
    MemberLost: _member_lost,
    MemberReturned: _member_returned,
}
RULES: Mapping[Phase, Mapping[Kind, PolicyRule]] = {
    Phase.DISCUSSING: {
        **_IN_DISCUSSION,
        Discussion: _discussion,
        SyncTaskAssignment: _assign,
        AsyncTaskAssignment: _assign,
        Pause: _pause,
        AskUser: _ask_user,
        ConcludeGroupDiscussion: _end,
        RepetitionRefused: _repetition_refused,
        MemberJoined: _joined,
    },
    Phase.GATHERING: {**_IN_DISCUSSION, Discussion: _answer},
    Phase.DECIDING: {**_IN_DISCUSSION, Decision: _decision, MessageRefused: _decision_refused, MemberJoined: _added},
    Phase.AWAITING_ACKS: {TimerFired: _timer_fired},
    Phase.ASSIGNED: {TimerFired: _timer_fired},
    Phase.PAUSED: {QuestionAnswered: _question_answered, TimerFired: _timer_fired},
}
"""The rules while a policy leads. Other messages of the floor holder are rejected; other events keep their meaning."""
