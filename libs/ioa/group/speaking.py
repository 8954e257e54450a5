"""The course of a group: its launch, messages, passes and silence, and members that join, are lost or return.

A free group has one rule of turns: the speaker names the next speaker, or several that speak in parallel, and has the floor again
after them. Under a policy `ioa.group.policy.course` selects the next speaker. The conclusion is the same in both.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from ioa.group import floor, questions, tasks
from ioa.group.events import (
    CancelRequested,
    Event,
    GroupLaunched,
    LaunchAbandoned,
    MemberJoined,
    MemberLost,
    MemberReturned,
    QuestionAnswered,
    RepetitionRefused,
    Said,
    TimerFired,
)
from ioa.group.policy import deciding
from ioa.group.policy.casting import current_scene
from ioa.group.policy.course import NO_CHOICE, begin, count_turn, end_discussion, gather, grant, pass_over, proceed
from ioa.group.policy.forms import no_votes, with_answer
from ioa.group.policy.hearing import is_draft
from ioa.group.policy.position import Next
from ioa.group.rejection import IllegalEventError, RejectionCode
from ioa.group.state import (
    Asking,
    Concluding,
    Discussing,
    Ended,
    Gathering,
    GroupState,
    Member,
    Monologue,
    OpenTask,
    Passed,
    Remark,
    Waiting,
    WaitingTask,
)
from ioa.protocol.decisions import DecidedBy, Decisions
from ioa.protocol.goals import Reason
from ioa.protocol.ids import AgentId
from ioa.protocol.messages import ConcludeGroupDiscussion, Conclusion, Discussion, Pass, PassCause, Phase, Thinking
from ioa.protocol.policy import Policy
from ioa.protocol.setup.charter import Limits

MAX_REMARKS = 8
"""Maximum messages of a member in a row that are compared with its next message."""
_REMARKS = (Discussion, Pass, Thinking)
"""Messages that continue a monologue."""


def launch(_state: None, launched: GroupLaunched, _policy: Policy | None) -> GroupState:
    """Open a group. Its owner has the floor, or under a policy the first speaker.

    Raises:
        IllegalEventError: The owner is not a member.
    """
    charter, policy = launched.charter, launched.charter.policy
    members = []
    for card in charter.team_members:
        roles = tuple([number for number, casting in enumerate(charter.cast) if card.agent_id in casting.members])
        human = policy is not None and any(policy.roles[role].human for role in roles)
        members.append(Member(agent_id=card.agent_id, patience=card.patience, roles=roles, human=human))
    speaks = {card.agent_id: card.speaks for card in charter.team_members}
    is_modelled = policy is None and speaks.get(charter.owner) == "model"
    state = GroupState(
        comm_id=charter.comm_id,
        goal_id=charter.goal_id,
        user=charter.user,
        owner=charter.owner,
        members=tuple(members),
        limits=charter.limits,
        depth=charter.team_up_depth,
        parent=charter.parent,
        stage=Discussing(holder=charter.owner, until=launched.at, since=launched.at),
        turn=0,
        spent=launched.usage,
        decisions=_decisions(launched.decided_by),
        ruled=tuple([agent for agent, by in speaks.items() if by == "rules"]) if is_modelled else (),
    )
    if not state.is_member(charter.owner):
        raise IllegalEventError(RejectionCode.NOT_A_MEMBER, f"The owner {charter.owner} is not in its own team.")
    if policy is not None:
        return begin(state, policy, launched.at)
    return state.model_copy(update=floor.granted(state, charter.owner, launched.at, state.patience_of(charter.owner)))


def _decisions(by: DecidedBy | None) -> tuple[Decisions, ...]:
    return () if by is None else (Decisions(by=by, count=1),)


def abandon(_state: None, abandoned: LaunchAbandoned, _policy: Policy | None) -> GroupState:
    """End a goal without a group."""
    return GroupState(
        comm_id=abandoned.comm_id,
        goal_id=abandoned.goal_id,
        user=abandoned.user,
        owner=abandoned.by,
        members=(),
        limits=Limits(max_turns=1, deadline=abandoned.at),
        depth=0,
        parent=abandoned.parent,
        stage=Ended(reason=abandoned.reason, content=abandoned.content, ended_at=abandoned.at),
        turn=0,
        spent=abandoned.usage,
        decisions=_decisions(abandoned.decided_by),
    )


def discuss(state: GroupState, said: Said, payload: Discussion, policy: Policy | None) -> GroupState:
    """Take a message of the floor holder or of a seat, and go on to the next speaker."""
    if isinstance(state.stage, Gathering):
        return _answer(state, said, payload, policy)
    if policy is None:
        remarks = _check_remark(state, said)
        if payload.next_speaker is not None:
            return floor.take_turn_and_grant(state, payload.next_speaker, said.at, monologue=remarks)
        votes = no_votes(state.turn + 1, said.message.header.sender, payload.question)
        after, named = floor.take_turn(state, monologue=remarks), {one: state.patience_of(one) for one in payload.next_speakers}
        return floor.gather(after, named, said.at, votes=votes, form=payload.question)
    number, course = state.number_of(said.message.header.sender), state.course
    if policy.reviews and is_draft(policy, state, state.members[number]):
        return deciding.ask_reviewer(current_scene(policy, state, said.at), number, payload)
    assert course is not None
    node = policy.nodes[course.node]
    is_compared = not (course.opening or node.turns.mode == "hub" or node.form or node.writes or node.review)
    spoken = floor.spoken(state, monologue=_check_remark(state, said) if is_compared else None)
    state = count_turn(state, policy, number, payload.fields, payload.writes, **spoken)
    scene = current_scene(policy, state, said.at)
    then = NO_CHOICE if payload.go is None else Next(payload.go)
    if names := payload.next_speakers or (() if payload.next_speaker is None else (payload.next_speaker,)):
        then = Next(None, tuple(map(state.number_of, names)), bool(payload.next_speakers), payload.question)
    if policy.watchers and (due := deciding.due_watchers(scene, number)):
        return deciding.ask_watchers(scene, due, then)
    return proceed(scene, then, payload.content)


def _check_remark(state: GroupState, said: Said) -> Monologue | None:
    """Return the monologue after a message.

    Raises:
        IllegalEventError: It repeats a message of its sender, and no event happened in between.
    """
    if not said.sketches:
        return None
    speaker, known, sketch = said.message.header.sender, state.monologue, said.sketches[0]
    made = known.remarks if known is not None and known.by == speaker else ()
    for remark in made:
        if remark.sketch == sketch:
            open_tasks = ", ".join(task.task_id for task in state.unfinished_tasks)
            way_out = f"assign a task, or {f'pause on {open_tasks}' if open_tasks else 'conclude'}"
            way_out = way_out if state.course is None else "or pass"
            why = f"You said the same in turn {remark.turn}, and nothing has happened since. Say something new, {way_out}."
            raise IllegalEventError(RejectionCode.REPETITION, why, repeats_turn=remark.turn)
    return Monologue.of_valid(by=speaker, remarks=(*made, Remark.of_valid(turn=state.turn, sketch=sketch))[-MAX_REMARKS:])


def forget_monologue(before: GroupState, state: GroupState, event: Event) -> GroupState:
    """Remove the monologue after any event that is not part of it."""
    if state.monologue is None or isinstance(event, RepetitionRefused):
        return state
    is_remark = isinstance(event, Said) and isinstance(event.message.payload, _REMARKS)
    is_idle = isinstance(event, TimerFired) and len(state.unfinished_tasks) == len(before.unfinished_tasks)
    return state if is_remark or is_idle else state.model_copy(update={"monologue": None})


def refuse_repetition(state: GroupState, refused: RepetitionRefused, policy: Policy | None) -> GroupState:
    """Note the first repetition of a turn. The next one makes the turn silent.

    In a free group it ends the discussion: the group waits for open tasks, or without any the owner concludes. Nothing is forced,
    so the owner may still conclude that the goal was reached.
    """
    stage = state.stage
    assert isinstance(stage, Discussing)
    if stage.repeated == refused.message_id:
        return state
    if stage.repeated is None:
        return state.model_copy(update={"stage": stage.model_copy(update={"repeated": refused.message_id})})
    if policy is not None:
        return silence(state, (refused.by,), refused.at, policy)
    waiting = _wait_or_conclude(state, state.unfinished_tasks, refused.at)
    return floor.take_turn(waiting) if isinstance(waiting.stage, Waiting) else waiting


def _wait_or_conclude(state: GroupState, open_tasks: Sequence[OpenTask | WaitingTask], at: datetime) -> GroupState:
    """Wait for tasks, which may bring something to say; without any let the owner conclude."""
    assert isinstance(state.stage, Discussing)
    if not open_tasks:
        return floor.open_conclusion(state, state.owner, at)
    triggers = tuple([task.task_id for task in open_tasks])
    until = at + state.limits.pause_timeout
    stage = Waiting.of_valid(phase=Phase.PAUSED, waiter=state.stage.holder, tasks=triggers, until=until)
    return state.model_copy(update={"stage": stage, "passes": ()})


def conclude(state: GroupState, said: Said, payload: ConcludeGroupDiscussion, policy: Policy | None) -> GroupState:
    """End the discussion, and the group if the message contains the conclusion of the member that states it."""
    sender = said.message.header.sender
    if payload.conclusion is not None and (policy is not None or floor.living_or_substitute(state, sender) == sender):
        return end(state, said, payload.conclusion, policy)
    return floor.open_conclusion(state, sender, said.at) if policy is None else end_discussion(state, said.at)


def end(state: GroupState, said: Said, payload: Conclusion, _policy: Policy | None) -> GroupState:
    """End the group. A limit that forced the conclusion is the reason, unless the goal was reached nevertheless."""
    forced = state.forced
    reached = payload.reason is Reason.CONCLUDED
    reason = payload.reason if forced is None or reached else forced
    limit = forced if reached else None
    return floor.end(state, reason, payload.content, said.at, payload.artifacts, tasks.lacks_of_conclusion(state), limit)


def _answer(state: GroupState, said: Said, payload: Discussion, policy: Policy | None) -> GroupState:
    """Take the message of a member that speaks in parallel with others."""
    sender, stage = said.message.header.sender, state.stage
    assert isinstance(stage, Gathering)
    votes = None if stage.votes is None else with_answer(stage.votes, stage.form, payload.fields)
    spoken = floor.spoken(state, monologue=None)
    if policy is None:
        state = state.model_copy(update=spoken)
    else:
        fields, number = {} if stage.form else payload.fields, state.number_of(sender)
        state = count_turn(state, policy, number, fields, payload.writes, **spoken)
        if policy.watchers:
            state = deciding.note_watchers(current_scene(policy, state, said.at), number)
    return _leave_seats(state, (sender,), said.at, policy, payload.content, votes=votes)


def _close_seats(state: GroupState, agents: Sequence[AgentId], at: datetime, policy: Policy | None) -> GroupState:
    """Close the seats of silent members."""
    assert isinstance(state.stage, Gathering)
    votes = state.stage.votes
    if votes is not None:
        votes = votes.model_copy(update={"silent": (*votes.silent, *agents)})
    return _leave_seats(state, agents, at, policy, votes=votes)


def _leave_seats(
    state: GroupState, agents: Sequence[AgentId], at: datetime, policy: Policy | None, words: str | None = None, **changed: object
) -> GroupState:
    """Remove seats, and go on after the last one. Under a policy members whose models were unavailable are asked again first."""
    stage = state.stage
    assert isinstance(stage, Gathering)
    stage = stage.model_copy(update={"seats": tuple([one for one in stage.seats if one.agent_id not in agents]), **changed})
    state = state.model_copy(update={"stage": stage})
    if stage.seats:
        return state
    if policy is None:
        assert stage.votes is not None
        return floor.give_back(state.model_copy(update={"tally": stage.votes}), stage.votes.by, at)
    scene = current_scene(policy, state, at)
    if again := [number for number in scene.present if scene.agent(number) in stage.away]:
        votes = stage.votes and stage.votes.model_copy(update={"turn": state.turn + 1})
        anew = gather(scene, again, votes=votes, form=stage.form)
        if isinstance(anew.stage, Gathering) and policy.is_scoped:
            return anew.model_copy(update={"stage": anew.stage.model_copy(update={"begun": stage.begun or state.turn})})
        return anew
    if stage.votes is not None:
        scene = scene._replace(state=state.model_copy(update={"tally": stage.votes}))
    if (watch := scene.course.watch) is not None:
        return deciding.ask_watchers(scene, watch.due, watch.then)
    hub = scene.hub
    return proceed(scene, Next(named=() if hub is None else (hub,), gathered=True), words)


def pass_turn(state: GroupState, said: Said, payload: Pass, policy: Policy | None) -> GroupState:
    """Pass a turn, a seat or a decision. A member whose model is unavailable is waited for some time."""
    sender, at, stage = said.message.header.sender, said.at, state.stage
    if policy is None and isinstance(stage, Gathering):
        return _close_seats(state, (sender,), at, policy)
    noted = _note_pass(state, sender, payload.cause, at)
    if policy is None or isinstance(stage, Concluding):
        return _pass_on(noted, sender, payload, at)
    is_away = payload.cause is PassCause.MODEL_UNAVAILABLE
    waits = is_away and at < noted.passes[-1].since + state.limits.model_patience
    match stage:
        case Gathering() if waits:
            return _leave_seats(noted, (sender,), at, policy, away=(*stage.away, sender))
        case Asking():
            scene = current_scene(policy, noted, at)
            return deciding.ask_again(scene) if waits else deciding.decide(scene)
        case Discussing() if waits:
            return grant(current_scene(policy, noted, at), state.number_of(sender))
    return silence(noted, (sender,), at, policy, Reason.MODEL_UNAVAILABLE if is_away else Reason.NO_SPEAKER)


def _note_pass(state: GroupState, holder: AgentId, cause: PassCause, at: datetime) -> GroupState:
    """Note a pass. A cause that continues counts from the begin of the turn in which it was first given."""
    before = next((one for one in state.passes if one.agent_id == holder and one.cause is cause), None)
    since = state.stage.since if isinstance(state.stage, Discussing | Concluding | Gathering | Asking) else at
    this = before or Passed.of_valid(agent_id=holder, cause=cause, since=since)
    return state.model_copy(update={"passes": (*(one for one in state.passes if one.agent_id != holder), this)})


def _pass_on(state: GroupState, holder: AgentId, passed: Pass, at: datetime) -> GroupState:
    """Grant the floor to the next member, or after all members have passed do what their causes call for.

    Something to say is missing: the group waits or concludes. Usable answers are missing: it ends. Models are missing: it waits.
    """
    if state.forced is Reason.BUDGET and passed.cause is not PassCause.MODEL_UNAVAILABLE:  # another conclusion would cost more
        return floor.end(state, Reason.BUDGET, _describe_failure(state, state.passes[-1:], (), passed), at)
    by_member = {one.agent_id: one for one in state.passes}
    willing = state.willing() or (holder,)
    if any(agent_id not in by_member for agent_id in willing):
        return floor.pass_on(state, at)
    passes = [by_member[agent_id] for agent_id in willing]
    away = [one for one in passes if one.cause is PassCause.MODEL_UNAVAILABLE]
    if away and at < max(one.since for one in away) + state.limits.model_patience:
        return floor.pass_on(state, at)
    if isinstance(state.stage, Discussing) and any(one.cause is PassCause.NOTHING_TO_ADD for one in passes):
        return _wait_or_conclude(state, state.open_tasks, at)
    reason = Reason.MODEL_UNAVAILABLE if away else Reason.FAILED
    return floor.end(state, state.forced or reason, _describe_failure(state, passes, away, passed), at)


def _describe_failure(state: GroupState, passes: Sequence[Passed], away: Sequence[Passed], last: Pass) -> str:
    names = ", ".join(one.agent_id for one in passes)
    if away:
        since = min(one.since for one in away)
        why = f"No language model of the members answers: that of {names}, since {since:%Y-%m-%d %H:%M:%S} UTC."
    elif last.cause is PassCause.NO_USABLE_ANSWER:
        why = f"No member gave a usable answer: {names}."
    else:
        why = "No member states a conclusion."
    words = f" The last said: {last.content}" if last.content else ""
    return f"{why}{words} Tasks assigned: {state.tasks_given}."


def prolong(state: GroupState, said: Said, _payload: Thinking, _policy: Policy | None) -> GroupState:
    """Let a member keep its turn for its patience from now on.

    Raises:
        IllegalEventError: It has none, or more than half of its time is left.
    """
    holder, stage = said.message.header.sender, state.stage
    until = prolonged_until(state, holder, said.at)
    if until is None:
        why = "Only a member with patience on its card keeps the floor longer, in the second half of its time."
        raise IllegalEventError(RejectionCode.NO_CHANGE, why)
    changed: dict[str, object] = {"until": until}
    if isinstance(stage, Gathering):
        seats = [seat.model_copy(update=changed) if seat.agent_id == holder else seat for seat in stage.seats]
        changed = {"seats": tuple(seats)}
    return state.model_copy(update={"stage": stage.model_copy(update=changed)})


def prolonged_until(state: GroupState, holder: AgentId, at: datetime) -> datetime | None:
    """Return until when a member may keep its turn; None if it may not keep it longer now."""
    patience, stage = state.patience_of(holder), state.stage
    assert isinstance(stage, Discussing | Gathering | Asking | Concluding)
    ends = next(one.until for one in stage.seats if one.agent_id == holder) if isinstance(stage, Gathering) else stage.until
    if patience is None or at < ends - patience / 2:
        return None
    until = min(at + patience, state.limits.deadline)
    return until if until > ends else None


def silence(
    state: GroupState, silent: Sequence[AgentId], at: datetime, policy: Policy | None, reason: Reason | None = None
) -> GroupState:
    """Count the silent turns of the floor holder or of seats and go on, or end the group after too many in a row."""
    led = None if isinstance(state.stage, Concluding) else policy
    silences = state.silences + len(silent)
    is_over = silences >= floor.ROUNDS_OF_SILENCE * len(state.members) or state.forced is Reason.BUDGET
    if is_over or (led is not None and led.silent == "end"):
        reason = reason or (Reason.MEMBER_LOST if led is None else Reason.NO_SPEAKER)
        return floor.end(state, state.forced or reason, f"Too many turns in a row were silent: {silences}.", at)
    after = state.model_copy(update={"silences": silences})
    if led is not None:
        for agent in silent:
            after = count_turn(after, led, state.number_of(agent))
    if isinstance(state.stage, Gathering):
        return _close_seats(after, silent, at, policy)
    return floor.pass_on(after, at) if led is None else proceed(current_scene(led, after, at))


def resume(state: GroupState, waiter: AgentId, at: datetime, policy: Policy | None) -> GroupState:
    """Return the floor to a member that waited. Under a policy the turn of an absent member is silent if another is present."""
    if policy is None:
        return floor.give_back(state, waiter, at)
    scene, number = current_scene(policy, state, at), state.number_of(waiter)
    if number in scene.present or not scene.present:
        return grant(scene, number)
    counted = count_turn(state, policy, number).model_copy(update={"silences": state.silences + 1})
    return proceed(current_scene(policy, counted, at))


def take_answer(state: GroupState, answered: QuestionAnswered, policy: Policy | None) -> GroupState:
    """Apply an answer of the user. The task that asked gets it, or the member that asked has the floor again."""
    if answered.task_id is not None:
        about = answered.number, answered.answer, answered.at
        return questions.answer_task(state, answered.task_id, *about)
    return resume(state, questions.asker_of(state, answered), answered.at, policy)


def lose(state: GroupState, lost: MemberLost, policy: Policy | None) -> GroupState:
    """Mark a member as lost and suspect its tasks; its floor, seat or decision goes to another member, uncounted.

    Raises:
        IllegalEventError: The member is a person.
    """
    if any(one.human and one.agent_id == lost.agent_id for one in state.members):
        raise IllegalEventError(RejectionCode.NO_CHANGE, f"{lost.agent_id} is a person, and persons are never lost.")
    if lost.agent_id not in state.living():
        return state
    after = floor.change_members(state, (lost.agent_id,), lost=True, lost_at=lost.at)
    after = tasks.suspect(after, lost.agent_id, lost.at)
    if lost.agent_id not in state.floor:
        return after
    match after.stage:
        case Gathering(seats=seats):
            if policy is not None and len(seats) == 1 and not current_scene(policy, after, lost.at).present:
                return after  # it may come back
            return _close_seats(after, (lost.agent_id,), lost.at, policy)
        case Asking() if policy is not None:
            return deciding.ask_again(current_scene(policy, after, lost.at))
        case Discussing() if policy is not None:
            return pass_over(current_scene(policy, after, lost.at), state.number_of(lost.agent_id))
    return floor.pass_on(after, lost.at) if after.living() else after


def return_member(state: GroupState, returned: MemberReturned, policy: Policy | None) -> GroupState:
    """Mark a member as living. It takes the floor from a lost holder that kept it because no other member was present."""
    if returned.agent_id in state.living() or not state.is_member(returned.agent_id):
        return state
    after, holder = floor.change_members(state, (returned.agent_id,), lost=False, lost_at=None), state.floor_holder
    if policy is not None and isinstance(state.stage, Discussing) and holder is not None:
        scene = current_scene(policy, after, returned.at)
        return after if holder in after.living() else pass_over(scene, state.number_of(holder))
    is_alone = not state.living() and holder not in (None, returned.agent_id)
    return floor.pass_on(after, returned.at) if is_alone else after


def invite(state: GroupState, joined: MemberJoined, policy: Policy | None) -> GroupState:
    """Add an invited member. The inviter keeps the floor; an invitation by a watcher is its decision."""
    where, agent_id = state.course, joined.card.agent_id
    ruled = (*state.ruled, agent_id) if joined.ruled else state.ruled
    changed: dict[str, object] = {"ruled": ruled}
    roles: tuple[int, ...] = ()
    if policy is not None and where is not None and joined.role is not None:
        roles = (policy.role_numbers[joined.role],)
        grown = {"taken": (*where.taken, 0), "total": (*where.total, 0) if policy.counts_totals else ()}
        changed["course"] = where.model_copy(update=grown)
    changed["members"] = (*state.members, Member(agent_id=agent_id, patience=joined.card.patience, roles=roles))
    after = state.model_copy(update=changed)
    if policy is None or not isinstance(after.stage, Asking):
        return after
    return deciding.ask_next_watcher(current_scene(policy, after, joined.at))


def cancel(state: GroupState, cancelled: CancelRequested, _policy: Policy | None) -> GroupState:
    """End the group on request."""
    return floor.end(state, Reason.CANCELLED, cancelled.why or "Cancelled on request.", cancelled.at)


def _waits_for_nothing(state: GroupState) -> bool:
    stage = state.stage
    if not isinstance(stage, Waiting) or stage.question is not None:
        return False
    if stage.phase is Phase.AWAITING_ACKS:
        awaited = {task.task_id for task in state.open_tasks if task.progress == 0 and task.subgroup is None}
    else:
        awaited = {task.task_id for task in state.unfinished_tasks}
    return awaited.isdisjoint(stage.tasks)


NOTHING_TO_WAIT_FOR = floor.StateRule(
    "nothing left to wait for",
    floor.WAITING,
    _waits_for_nothing,
    lambda state, at, policy: resume(state, state.stage.waiter, at, policy) if isinstance(state.stage, Waiting) else state,
    Phase.DISCUSSING,
    "the floor returns to the member that assigned or paused, or to a living member in its place",
)
