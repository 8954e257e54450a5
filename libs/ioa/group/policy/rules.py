"""What events mean in the discussion of a group under a policy, in the place of the table's own rules."""

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
from ioa.group.forms import check_fields
from ioa.group.joining import join_in_role
from ioa.group.policy.casting import Scene, scene_of
from ioa.group.policy.course import (
    ask,
    back_to_hub,
    begin_anew,
    conclude,
    counted,
    finish,
    gather,
    go_on,
    grant_again,
    leave,
    let_answer,
    let_go_on,
    let_speak,
    pass_over,
    proceed,
    removed,
)
from ioa.group.policy.hearing import hides, is_scoped, told_of_tasks
from ioa.group.policy.offer import (
    check_addressees,
    check_discussion,
    check_end,
    check_nothing_left,
    check_writes,
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
    SyncTaskAssignment,
    rejects_of,
)
from ioa.protocol.policy import END, NOTHING, STAY, Policy

PolicyRule = Callable[[GroupState, Any, Policy], GroupState]


def _discussion(state: GroupState, said: Said, policy: Policy) -> GroupState:
    payload, sender = said.message.payload, said.message.header.sender
    assert isinstance(payload, Discussion) and state.course is not None
    scene = scene_of(policy, state, state.course)
    offered = offer_in(scene, state, sender, narrows=bool(payload.to))
    if payload.go == END:
        check_nothing_left(scene, state, sender)
    check_discussion(offered, payload)
    state = tasks.reject(state, payload.rejects, sender)
    if offered.reviewed:
        return _drafted(state, said, scene)
    node = scene.node
    is_free = offered.say is None and node.turns.mode != "hub" and not node.form and not node.writes and node.review is None
    remarks = monologue.check_remark(state, said) if is_free else None
    changed = {**floor.turn_taken(state), "monologue": remarks}
    after = scene.after(state, counted(state, policy, sender, payload.fields, payload.writes))
    if not policy.watchers and payload.next_speaker is None and not payload.next_speakers:  # nearly all, and worth a microsecond
        return proceed(state, after, said.at, changed, go=payload.go, words=payload.content)
    names = payload.next_speakers or (() if payload.next_speaker is None else (payload.next_speaker,))
    named = tuple([state.number_of(agent) for agent in names])
    then = Next(payload.go, named, bool(payload.next_speakers), payload.question)
    if policy.watchers and (due := watching(policy, scene.course, scene.members[state.number_of(sender)], state.turns_taken + 1)):
        return _ask_watchers(state, after, said.at, changed, due, then)
    return _go_on_after(state, after, said.at, changed, then, payload.content)


def _go_on_after(
    state: GroupState, scene: Scene, at: datetime, changed: Mapping[str, object], then: Next, words: str | None
) -> GroupState:
    """Go on as a message has chosen; whom it has named, and who is not present any more after an ask, is left out."""
    named = [number for number in then.named if number in scene.present]
    last = scene.course.last
    if then.several and named and last is not None and way_out(scene, None) is None:
        votes = forms.no_votes(state.turn + 1, scene.agent(last), then.question)
        return gather(state, scene, named, at, changed, votes=votes, form=then.question)
    one = None if then.several or not named else named[0]
    if then.named and not named:
        one = back_to_hub(scene)
    return proceed(state, scene, at, changed, go=then.go, named=one, words=words, gathered=then.gathered)


def _ask_watchers(
    state: GroupState, scene: Scene, at: datetime, changed: Mapping[str, object], due: Sequence[int], then: Next
) -> GroupState:
    """Ask the first of some watchers that is there and has something to choose; behind the last one the group goes on."""
    for place, number in enumerate(due):
        course = scene.course.model_copy(update={"watch": Watch(due=tuple(due[place:]), then=then)})
        options = (NOTHING, *steps_in(scene.policy.watchers[number], state, scene))
        if len(options) > 1 and (asked := ask(state, scene._replace(course=course), at, changed, "watch", options, NOTHING)):
            return asked
    if scene.course.watch is not None:
        scene = scene._replace(course=scene.course.model_copy(update={"watch": None}))
    return _go_on_after(state, scene, at, changed, then, None)


def _watched(state: GroupState, scene: Scene, choice: str, members: Sequence[AgentId], at: datetime) -> GroupState:
    """Do what a watcher has chosen, and ask the next one."""
    watch = scene.course.watch
    assert watch is not None
    if choice == "end":
        return finish(state, scene, at)
    if choice in scene.policy.node_numbers:
        return begin_anew(state, scene, choice, at)
    if choice == "remove":
        gone = [state.number_of(agent) for agent in members]
        state = removed(state, gone)
        told = tuple([tuple([one for one in field if one[0] not in gone]) for field in scene.course.told])
        scene = scene_of(scene.policy, state, scene.course.model_copy(update={"told": told}))
    return _ask_watchers(state, scene, at, {}, watch.due[1:], watch.then)


def _drafted(state: GroupState, said: Said, scene: Scene) -> GroupState:
    """Have a draft reviewed; without anybody who could do so it goes as if the last one had been rejected."""
    payload, number = said.message.payload, state.number_of(said.message.header.sender)
    assert isinstance(payload, Discussion)
    changed = {**floor.turn_taken(state), "monologue": None}
    noted = scene._replace(course=drafted(scene.node, scene.course, number, payload))
    return ask(state, noted, said.at, changed, "review", (PASS, REJECT), REJECT) or _rejected_for_good(
        state, noted, said.at, changed
    )


def _reviewed(state: GroupState, scene: Scene, verdict: str, at: datetime) -> GroupState:
    """Have the author say again what was passed, or something else, as long as it has tries left."""
    draft = scene.course.draft
    assert draft is not None
    if verdict == REJECT and draft.tries <= 1:
        return _rejected_for_good(state, scene, at, {})
    known = {"passed": True} if verdict == PASS else {"tries": draft.tries - 1}
    course = scene.course.model_copy(update={"draft": draft.model_copy(update=known)})
    return let_answer(state, scene._replace(course=course), at, {})


def _rejected_for_good(state: GroupState, scene: Scene, at: datetime, changed: Mapping[str, object]) -> GroupState:
    """Do what follows when nothing that an author says is passed."""
    draft, review = scene.course.draft, scene.node.review
    assert draft is not None and review is not None
    author = scene.agent(draft.by)
    if review.then == "pass":
        course = scene.course.model_copy(update={"draft": draft.model_copy(update={"passed": True})})
        return let_answer(state, scene._replace(course=course), at, changed)
    if review.then == "end":
        speaker = "is said" if scene.policy.secrets else f"{author} says"
        why = f"Nothing that {speaker} in {scene.node.name} is passed by {review.by}."
        return floor.end(state.model_copy(update={**changed, "course": scene.course}), Reason.REFUSED, why, at)
    course = counted(state.model_copy(update={"course": scene.course}), scene.policy, author)
    return proceed(state, scene.after(state, course), at, changed)


def _assign(state: GroupState, said: Said, policy: Policy) -> GroupState:
    """Give out tasks where the node lets it, which is no turn of the node; of them is told who hears it, and who does one."""
    payload, sender = said.message.payload, said.message.header.sender
    assert isinstance(payload, SyncTaskAssignment | AsyncTaskAssignment)
    _check_tasks_offered(
        state, said, policy, (payload.content, *(text for one in payload.tasks for text in (one.task_desc, one.task_abstract)))
    )
    state = tasks.reject(state, payload.rejects, sender)
    told = told_of_tasks(policy, state, said.message)
    scoped = hides(policy) and len(told) < len(state.members)
    return tasks.assign(state, said, payload, tuple([state.number_of(one) for one in told]) if scoped else ())


def _pause(state: GroupState, said: Said, policy: Policy) -> GroupState:
    """Wait for tasks where the node lets it; that is no turn of the node."""
    payload = said.message.payload
    assert isinstance(payload, Pause)
    _check_tasks_offered(state, said, policy, (payload.content,))
    return tasks.pause(tasks.reject(state, payload.rejects, said.message.header.sender), said, payload)


def _check_tasks_offered(state: GroupState, said: Said, policy: Policy, texts: Sequence[str]) -> None:
    offered = offer(policy, state, said.message.header.sender)
    assert offered is not None, "the machine has asked whose floor it is"
    if not offered.tasks:
        raise IllegalEventError(RejectionCode.OFF_COURSE, "Nobody gives out tasks here, or waits for any: the node lacks `tasks`.")
    for words in filter(None, texts):
        check_guards(offered.guards, words)


def woken(state: GroupState, at: datetime, policy: Policy) -> GroupState:
    """Go on when there is nothing left to wait for: whoever gave out the tasks, or waited for some, has the floor again."""
    match state.stage:
        case Assigned(assigner=waiter) | AwaitingAcks(assigner=waiter) | Paused(pauser=waiter):
            return _waiter_goes_on(state, waiter, at, policy)
    raise AssertionError(f"nobody waits while {state.phase}")


def _ask_user(state: GroupState, said: Said, policy: Policy) -> GroupState:
    """Ask out of the group where the node asks; that is no turn of the node."""
    payload = said.message.payload
    assert isinstance(payload, AskUser)
    offered = offer(policy, state, said.message.header.sender)
    assert offered is not None, "the machine has asked whose floor it is"
    if not offered.asks:
        raise IllegalEventError(RejectionCode.OFF_COURSE, "Nobody asks out of the group here: the node lacks `asks`.")
    for words in (payload.text, *payload.options, payload.default):
        check_guards(offered.guards, words)
    return questions.ask(state, said, payload)


def _question_answered(state: GroupState, answered: QuestionAnswered, policy: Policy) -> GroupState:
    if answered.task_id is not None:
        return questions.answer(state, answered)
    return _waiter_goes_on(state, questions.asker_of(state, answered), answered.at, policy)


def _waiter_goes_on(state: GroupState, waiter: AgentId, at: datetime, policy: Policy) -> GroupState:
    """Give the floor back to who has asked out of the group, or has waited for tasks.

    Who is not there any more is passed over, if anybody else is there. Else it has the floor all the same, since it may come back,
    and what was answered or done is not lost.
    """
    assert state.course is not None
    scene, number = scene_of(policy, state, state.course), state.number_of(waiter)
    if after := let_go_on(state, scene, number, at):
        return after
    return proceed(state, scene.after(state, counted(state, policy, waiter)), at, {"silences": state.silences + 1})


def _joined(state: GroupState, joined: MemberJoined, policy: Policy) -> GroupState:
    """Take in who was invited; all hear why, so that this is held to what the node lets pass."""
    after = join_in_role(state, joined, policy)
    assert state.course is not None
    if joined.why:
        check_guards(policy.nodes[state.course.node].guards, joined.why)
    return after


def _added(state: GroupState, joined: MemberJoined, policy: Policy) -> GroupState:
    """Take in whom a watcher adds; that is its answer, and the next one is asked."""
    after = _joined(state, joined, policy)
    assert after.course is not None and after.course.watch is not None
    watch = after.course.watch
    return _ask_watchers(after, scene_of(policy, after, after.course), joined.at, {}, watch.due[1:], watch.then)


def _end(state: GroupState, said: Said, policy: Policy) -> GroupState:
    payload, sender = said.message.payload, said.message.header.sender
    assert isinstance(payload, ConcludeGroupDiscussion) and state.course is not None
    scene = scene_of(policy, state, state.course)
    check_nothing_left(scene, state, sender)
    check_end(offer_in(scene, state, sender), payload)
    state = tasks.reject(state, rejects_of(payload), sender)
    if payload.conclusion is None:
        return conclude(state, said.at)
    conclusion = payload.conclusion
    return floor.end(state, conclusion.reason, conclusion.content, said.at, conclusion.artifacts)


def _pass(state: GroupState, said: Said, policy: Policy) -> GroupState:
    """Take a pass for a silent turn; a member whose model is away is waited for first, since nobody decides in its place."""
    payload, sender = said.message.payload, said.message.header.sender
    assert isinstance(payload, Pass)
    noted = passing.noted(state, sender, payload.cause, said.at)
    if payload.cause is not PassCause.MODEL_UNAVAILABLE:
        return _silent(noted, policy, said.at, Reason.NO_SPEAKER)
    if _is_waited_for(noted, sender, said.at):
        return grant_again(noted, policy, said.at)
    return _silent(noted, policy, said.at, Reason.MODEL_UNAVAILABLE)


def _silent(state: GroupState, policy: Policy, at: datetime, reason: Reason) -> GroupState:
    """Count a turn in which nothing was said, and go on, or give the group up."""
    holder = state.floor_holder
    assert holder is not None
    silences = state.silences + 1
    if why := _given_up(state, policy, silences, (holder,)):
        return floor.end(state, reason, why, at)
    scene = scene_of(policy, state, counted(state, policy, holder))
    return proceed(state, scene, at, {"silences": silences})


def _given_up(state: GroupState, policy: Policy, silences: int, silent: Sequence[AgentId]) -> str:
    """Say why the group ends, since too much was silent; empty if it goes on."""
    if policy.silent == "end":
        return "Somebody said nothing." if policy.secrets else f"{', '.join(silent)} said nothing."
    return (
        f"Nobody speaks: {silences} turns in a row were silent." if silences >= floor.ROUNDS_OF_SILENCE * len(state.members) else ""
    )


def _repetition_refused(state: GroupState, refused: RepetitionRefused, policy: Policy) -> GroupState:
    """Note the first repetition of a turn; the next one passes it."""
    noted = floor.note_repetition(state, refused.by, refused.turn, refused.message_id)
    return _silent(state, policy, refused.at, Reason.NO_SPEAKER) if noted is None else noted


def _timer_fired(state: GroupState, fired: TimerFired, policy: Policy) -> GroupState:
    """End the group at its deadline, or go on without whoever has let the time run out."""
    if fired.at >= state.limits.deadline:
        return floor.end_at_deadline(state, fired.at)
    after = questions.run_out(state, fired)
    match after.stage:
        case Discussing(until=until) if until <= fired.at:
            return _silent(after, policy, fired.at, Reason.NO_SPEAKER)
        case Gathering() as stage if silent := gathering.overdue(stage, fired.at):
            return _seats_silent(after, silent, policy, fired.at)
        case Asking(until=until) if until <= fired.at:
            return _default_stands(after, policy, fired.at)
        case (
            AwaitingAcks(assigner=waiter, until=until) | Paused(pauser=waiter, until=until) | Awaiting(asker=waiter, until=until)
        ) if until <= fired.at:
            return _waiter_goes_on(after, waiter, fired.at, policy)
    if after is state:
        raise IllegalEventError(RejectionCode.NOTHING_DUE, "No deadline has passed.")
    return after


def _without(state: GroupState, lost: MemberLost) -> GroupState:
    """Note that a member is lost, and suspect its tasks."""
    return tasks.suspect(floor.mark_lost(state, lost.agent_id, lost.at), lost.agent_id, lost.at)


def _member_lost(state: GroupState, lost: MemberLost, policy: Policy) -> GroupState:
    if lost.agent_id not in state.living():
        return state
    after = _without(state, lost)
    return pass_over(after, policy, lost.at) if state.floor_holder == lost.agent_id else after


def _member_returned(state: GroupState, returned: MemberReturned, policy: Policy) -> GroupState:
    """Count a member among the living; if a lost one has kept the floor, since nobody was present, it goes to who is now."""
    if returned.agent_id in state.living() or not state.is_member(returned.agent_id):
        return state
    after = floor.mark_living(state, returned.agent_id)
    return after if _holder_lives(after) else pass_over(after, policy, returned.at)


def _holder_lives(state: GroupState) -> bool:
    return state.floor_holder in state.living()


def _answer(state: GroupState, said: Said, policy: Policy) -> GroupState:
    """Take what one of several says who speak side by side."""
    payload, sender, stage = said.message.payload, said.message.header.sender, state.stage
    assert isinstance(payload, Discussion) and isinstance(stage, Gathering)
    offered = offer(policy, state, sender, narrows=bool(payload.to))
    assert offered is not None, "the machine has asked who has a seat"
    gathering.check_answer(payload)
    check_addressees(offered, payload)
    check_guards(offered.guards, payload.content, offered.form, payload.fields, payload.writes.values())
    check_fields(offered.form, payload.fields)
    check_writes(offered, payload)
    state = tasks.reject(state, payload.rejects, sender)
    course = counted(state, policy, sender, {} if stage.form else payload.fields, payload.writes)
    if policy.watchers:
        due = watching(policy, course, state.members[state.number_of(sender)], state.turns_taken + 1)
        known = due if course.watch is None else sorted({*course.watch.due, *due})
        course = course.model_copy(update={"watch": Watch(due=tuple(known), then=Next(gathered=True))}) if known else course
    left = gathering.without(gathering.counted(stage, payload), (sender,))
    after = state.model_copy(update={**floor.turn_taken(state), "monologue": None, "course": course, "stage": left})
    return _gathered(after, policy, said.at, payload.content)


def _seats_silent(
    state: GroupState, silent: Sequence[AgentId], policy: Policy, at: datetime, reason: Reason = Reason.NO_SPEAKER
) -> GroupState:
    """Count the turns of seats in which nothing was said, and close them, or give the group up."""
    assert isinstance(state.stage, Gathering)
    silences = state.silences + len(silent)
    if why := _given_up(state, policy, silences, silent):
        return floor.end(state, reason, why, at)
    after = state.model_copy(update={"silences": silences, "stage": gathering.silenced(state.stage, silent)})
    for agent in silent:
        after = after.model_copy(update={"course": counted(after, policy, agent)})
    return _gathered(after, policy, at, None)


def _gathered(state: GroupState, policy: Policy, at: datetime, words: str | None) -> GroupState:
    """Go on when all seats are closed; members whose models are away are asked once more first."""
    stage, course = state.stage, state.course
    assert isinstance(stage, Gathering) and course is not None
    if stage.seats:
        return state
    scene = scene_of(policy, state, course)
    again = [number for number in scene.present if scene.agent(number) in stage.away]
    if again:
        votes = stage.votes and stage.votes.model_copy(update={"turn": state.turn + 1})
        anew = gather(state, scene, again, at, {}, votes=votes, form=stage.form)
        if isinstance(anew.stage, Gathering) and is_scoped(policy):
            begun = anew.stage.model_copy(update={"begun": stage.begun or state.turn})
            return anew.model_copy(update={"stage": begun})
        return anew
    changed = {} if stage.votes is None else {"tally": stage.votes}
    if course.watch is not None:
        return _ask_watchers(state, scene, at, changed, course.watch.due, course.watch.then)
    return proceed(state, scene, at, changed, named=back_to_hub(scene), words=words, gathered=True)


def _seat_passes(state: GroupState, said: Said, policy: Policy) -> GroupState:
    """Take a pass for a silent turn; a member whose model is away is asked again when the others have spoken."""
    payload, sender, stage = said.message.payload, said.message.header.sender, state.stage
    assert isinstance(payload, Pass) and isinstance(stage, Gathering)
    noted = passing.noted(state, sender, payload.cause, said.at)
    if payload.cause is not PassCause.MODEL_UNAVAILABLE:
        return _seats_silent(noted, (sender,), policy, said.at)
    if _is_waited_for(noted, sender, said.at):
        left = gathering.without(stage, (sender,)).model_copy(update={"away": (*stage.away, sender)})
        return _gathered(noted.model_copy(update={"stage": left}), policy, said.at, None)
    return _seats_silent(noted, (sender,), policy, said.at, Reason.MODEL_UNAVAILABLE)


def _seat_lost(state: GroupState, lost: MemberLost, policy: Policy) -> GroupState:
    """Close the seat of a lost member, uncounted; the last one stays if nobody is present, since the member may come back."""
    if lost.agent_id not in state.living():
        return state
    after, stage = _without(state, lost), state.stage
    assert isinstance(stage, Gathering) and after.course is not None
    if lost.agent_id not in state.floor or (len(stage.seats) == 1 and not scene_of(policy, after, after.course).present):
        return after
    left = gathering.silenced(stage, (lost.agent_id,))
    return _gathered(after.model_copy(update={"stage": left}), policy, lost.at, None)


def _decision(state: GroupState, said: Said, policy: Policy) -> GroupState:
    payload, stage = said.message.payload, state.stage
    assert isinstance(payload, Decision) and isinstance(stage, Asking)
    if payload.choice not in stage.options:
        why = f"{payload.choice!r} is none of the options: {', '.join(stage.options)}."
        raise IllegalEventError(RejectionCode.BAD_DECISION, why)
    check_step(state, stage, payload)
    return _decided(state, payload.choice, policy, said.at, payload.members)


def _decided(state: GroupState, choice: str, policy: Policy, at: datetime, members: Sequence[AgentId] = ()) -> GroupState:
    """Do what was chosen."""
    stage, course = state.stage, state.course
    assert isinstance(stage, Asking) and course is not None
    scene = scene_of(policy, state, course if course.nominated is None else course.model_copy(update={"nominated": None}))
    if stage.about == "watch":
        return _watched(state, scene, choice, members, at)
    if stage.about == "review":
        return _reviewed(state, scene, choice, at)
    if stage.about == "speaker":
        chosen = state.number_of(AgentId(choice))
        return let_speak(state, scene, chosen, at)
    if choice == STAY:
        named = course.nominated
        if named is not None and named not in scene.present:
            named = back_to_hub(scene)
        return go_on(state, scene, at, {}, named=named)
    return leave(state, scene, next(way for way in scene.node.exits if way.judge is not None and way.to == choice), at, {})


def _decision_refused(state: GroupState, refused: MessageRefused, policy: Policy) -> GroupState:
    """Count a wrong choice; behind the last one the default stands."""
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


def _asked_passes(state: GroupState, said: Said, policy: Policy) -> GroupState:
    """Let the default stand; a member whose model is away is asked again first."""
    payload, sender = said.message.payload, said.message.header.sender
    assert isinstance(payload, Pass)
    noted = passing.noted(state, sender, payload.cause, said.at)
    if payload.cause is PassCause.MODEL_UNAVAILABLE and _is_waited_for(noted, sender, said.at):
        return _asked_anew(noted, policy, said.at)
    return _default_stands(noted, policy, said.at)


def _asked_lost(state: GroupState, lost: MemberLost, policy: Policy) -> GroupState:
    """Ask another holder of the role if who is asked is lost; the default stands if there is none."""
    if lost.agent_id not in state.living():
        return state
    after = _without(state, lost)
    return _asked_anew(after, policy, lost.at) if lost.agent_id in state.floor else after


def _asked_anew(state: GroupState, policy: Policy, at: datetime) -> GroupState:
    stage, course = state.stage, state.course
    assert isinstance(stage, Asking) and course is not None
    scene = scene_of(policy, state, course)
    asked = ask(state, scene, at, {}, stage.about, stage.options, stage.default, stage.tries)
    return _default_stands(state, policy, at) if asked is None else asked


def _default_stands(state: GroupState, policy: Policy, at: datetime) -> GroupState:
    assert isinstance(state.stage, Asking)
    return _decided(state, state.stage.default, policy, at)


def _is_waited_for(state: GroupState, agent_id: AgentId, at: datetime) -> bool:
    """Whether the model of a member that has just passed may still come back."""
    since = next(one.since for one in state.passes if one.agent_id == agent_id)
    return at < since + state.limits.model_patience


def _returned(state: GroupState, returned: MemberReturned, _policy: Policy) -> GroupState:
    """Count a member among the living; it has no seat, and is not asked, before the next turn."""
    if returned.agent_id in state.living() or not state.is_member(returned.agent_id):
        return state
    return floor.mark_living(state, returned.agent_id)


RULES: Mapping[Phase, Mapping[Kind, PolicyRule]] = {
    Phase.DISCUSSING: {
        Discussion: _discussion,
        SyncTaskAssignment: _assign,
        AsyncTaskAssignment: _assign,
        Pause: _pause,
        AskUser: _ask_user,
        ConcludeGroupDiscussion: _end,
        Pass: _pass,
        RepetitionRefused: _repetition_refused,
        TimerFired: _timer_fired,
        MemberLost: _member_lost,
        MemberReturned: _member_returned,
        MemberJoined: _joined,
    },
    Phase.GATHERING: {
        Discussion: _answer,
        Pass: _seat_passes,
        TimerFired: _timer_fired,
        MemberLost: _seat_lost,
        MemberReturned: _returned,
    },
    Phase.DECIDING: {
        Decision: _decision,
        MessageRefused: _decision_refused,
        Pass: _asked_passes,
        TimerFired: _timer_fired,
        MemberJoined: _added,
        MemberLost: _asked_lost,
        MemberReturned: _returned,
    },
    Phase.AWAITING_ACKS: {TimerFired: _timer_fired},
    Phase.ASSIGNED: {TimerFired: _timer_fired},
    Phase.PAUSED: {
        QuestionAnswered: _question_answered,
        TimerFired: _timer_fired,
    },
}
"""The rules that hold while a policy leads. What else a floor holder may say in a free group is off course; all other events mean
the same as in one."""
