"""Legality: decides whether an event may happen now.

`step`, prompts, seats, documentation and rejections all use it. The table contains the legal phases of each kind, the `Offer` of a
member contains its legal messages. Rules of tasks and questions check their own ids in `tasks` and `questions`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

from ioa.group import floor, questions
from ioa.group.events import (
    Event,
    Kind,
    MemberJoined,
    MessageRefused,
    RepetitionRefused,
    Said,
    SubgroupOpened,
    TaskDecision,
    kind_of,
)
from ioa.group.limits import UNLIMITED, GroupLimits, exceeded_limit
from ioa.group.policy.casting import Scene, current_scene
from ioa.group.policy.deciding import ADD, NAMING, digest_of, nameable
from ioa.group.policy.exits import offered_ways
from ioa.group.policy.forms import check_fields, form_of, resolve_form
from ioa.group.policy.hearing import addressees, hides, is_reviewed
from ioa.group.policy.position import Choices
from ioa.group.rejection import IllegalEventError, RejectionCode
from ioa.group.speaking import prolonged_until
from ioa.group.state import Ask, Asking, Discussing, Ended, Gathering, GroupState, Member
from ioa.group.table import TABLE, Cell, Row, Sender
from ioa.protocol.ids import AgentId
from ioa.protocol.messages import (
    AskUser,
    AsyncTaskAssignment,
    ConcludeGroupDiscussion,
    Conclusion,
    Decision,
    Discussion,
    InformTaskProgress,
    InformTaskResult,
    Message,
    Pass,
    PassCause,
    Pause,
    Payload,
    SyncTaskAssignment,
    TaskQuestion,
    Thinking,
    rejects_of,
)
from ioa.protocol.policy import Policy
from ioa.protocol.policy_parts import END, Form, Guard, Name


class Offer(NamedTuple):
    """The messages that a member with the floor, a seat or a decision may send now. It may always pass.

    Attributes:
        say: The words with which it must open the node; None if it chooses its own.
        next_speakers: Members that it may name as the next speaker. Without a name the order of the policy decides.
        go: Nodes to which it may lead the group, or the end. Without one the group stays, as long as the node goes on.
        may_conclude: Whether it may state the conclusion now.
        form: Fields to fill in.
        most_named: Maximum number of `next_speakers` that it may name to speak in parallel; 1 permits none in parallel.
        may_ask: Whether it may ask members that speak in parallel a question.
        options: Options of a decision; then it sends nothing else.
        default: Option without a decision.
        about: The kind of decision: the exit, the next speaker, whether a draft passes, or whether to step in (`"watch"`).
        concluding: Whether the discussion has ended, and only its conclusion is expected.
        addressees: Members to which it may narrow a message, among its hearers; empty if all members hear everything.
        guards: Rules for its words.
        reviewed: Whether its message is a draft, which others hear once it has passed.
        members: Members that it may name when it steps in; the owner of the group cannot be removed.
        asks: Whether it may ask the user and have the floor again with the answer.
        writes: Texts of the board that it may write with its message.
        invites: Roles in which it may invite agents.
        tasks: Whether it may assign tasks to any members, or wait for tasks, and have the floor again.
        again: Digest of the draft that has passed, which it sends again unchanged; empty without one. Its client does so.
        must_name: Whether it must name the next speaker, since no policy leads the group.
    """

    say: str | None = None
    next_speakers: tuple[AgentId, ...] = ()
    go: tuple[str, ...] = ()
    may_conclude: bool = False
    form: Form = ()
    most_named: int = 1
    may_ask: bool = False
    options: tuple[str, ...] = ()
    default: str = ""
    about: Ask | None = None
    concluding: bool = False
    addressees: tuple[AgentId, ...] = ()
    guards: tuple[Guard, ...] = ()
    reviewed: bool = False
    again: str = ""
    members: tuple[AgentId, ...] = ()
    asks: bool = False
    writes: tuple[str, ...] = ()
    invites: tuple[str, ...] = ()
    tasks: bool = False
    must_name: bool = False

    @property
    def kinds(self) -> frozenset[Kind]:
        """The kinds of message that it permits."""
        talks = not self.options and not self.concluding
        permitted: Mapping[Kind, object] = {
            Discussion: talks and (self.next_speakers or not self.must_name),
            ConcludeGroupDiscussion: END in self.go and not self.reviewed,
            Conclusion: self.concluding,
            Decision: self.options,
            AskUser: self.asks,
            **dict.fromkeys((SyncTaskAssignment, AsyncTaskAssignment, Pause), self.tasks),
        }
        return frozenset((Pass, Thinking, *(kind for kind, is_permitted in permitted.items() if is_permitted)))


TO_CONCLUDE = Offer(may_conclude=True, concluding=True)
"""The offer of the member that states the conclusion after the discussion."""


def offer(
    policy: Policy | None,
    state: GroupState,
    agent_id: AgentId,
    *,
    narrows: bool = True,
    chooses: bool = True,
    at: datetime | None = None,
) -> Offer | None:
    """Return the messages that a member may send in the discussion now; None without a turn, or after the discussion.

    It takes time to find the addressees (`narrows`), and the next speakers and exits under a policy (`chooses`). The offer of a
    free group depends on the time, by default the begin of the turn.
    """
    if agent_id not in state.floor:
        return None
    stage = state.stage
    if isinstance(stage, Discussing):
        if policy is not None:
            return _offer_in(policy, state, agent_id, at or stage.since, narrows=narrows, chooses=chooses)
        others = state.reachable(at or stage.since, but=agent_id)
        most = min(len(others), state.turns_left - 1)
        return Offer(None, others, (END,), True, (), most, True, asks=True, tasks=True, must_name=True)
    if isinstance(stage, Gathering):
        form = resolve_form(form_of(state, policy), state.members, policy)
        if policy is None or state.course is None:
            return Offer(form=form)
        node, able = policy.nodes[state.course.node], addressees(policy, state, agent_id) if narrows else ()
        return Offer(form=form, addressees=able, guards=node.guards, writes=node.writes)
    if isinstance(stage, Asking) and policy is not None:
        members = state.hearing if stage.about == "watch" else ()
        roles = policy.role_numbers if members and ADD in stage.options else ()
        invites = _able_roles(policy, roles, state.members[state.number_of(agent_id)])
        return Offer(options=stage.options, default=stage.default, about=stage.about, members=members, invites=invites)
    return None


def _offer_in(policy: Policy, state: GroupState, agent_id: AgentId, at: datetime, *, narrows: bool, chooses: bool) -> Offer:
    """Return the messages that the holder of the floor may send under a policy; see `offer`."""
    course = state.course
    assert course is not None
    if course.opening:
        opens = policy.nodes[course.node].opens
        return Offer(say=None if opens is None else opens.say)
    if course.draft is not None and course.draft.passed:
        return Offer(again=course.draft.digest)
    offered = policy.of_members(("offer", course.node, agent_id), state.members, _fixed_offer)
    if not (chooses or narrows):
        return offered
    chosen = course.offered or _choices(current_scene(policy, state, at), state.number_of(agent_id))
    return offered._replace(
        next_speakers=chosen.next_speakers,
        go=chosen.go,
        may_conclude=END in chosen.go and floor.concluder(state) == agent_id,
        most_named=chosen.most_named,
        may_ask=chosen.most_named > 1 and not offered.form,
        addressees=addressees(policy, state, agent_id) if narrows else (),
    )


def _fixed_offer(policy: Policy, members: Sequence[Member], key: tuple[str, int, AgentId]) -> Offer:
    """Return the offer of a member with the floor in a node, without choices."""
    node, member = policy.nodes[key[1]], next(one for one in members if one.agent_id == key[2])
    return Offer(
        form=resolve_form(node.form, members, policy),
        guards=node.guards,
        writes=node.writes,
        invites=_able_roles(policy, node.roles, member) if node.invites else (),
        reviewed=is_reviewed(policy, node, member),
        asks=node.asks,
        tasks=node.tasks,
    )


def _choices(scene: Scene, me: int) -> Choices:
    """Return the next speakers and exits that a floor holder may choose. In a hub only the hub chooses, also several speakers."""
    state, node, turns = scene.state, scene.node, scene.node.turns
    is_hub = turns.mode == "hub"
    if is_hub and scene.hub != me:
        return Choices((), 1, ())
    others: tuple[int, ...] = ()
    most = 1
    if is_hub or turns.mode == "nominate":
        others = scene.present if turns.repeat and not is_hub else scene.others(me)
    if is_hub and len(others) > 1 and not is_reviewed(scene.policy, node, state.members[me]):
        left = state.turns_left if node.max is None else min(state.turns_left, node.max - scene.course.turns)
        most = min(len(others), max(1, left - 1))
    ways = [way.to for way in offered_ways(scene, node.offered)] if node.offered else []
    if END in ways and state.tasks_left(scene.agent(me)):
        ways.remove(END)
    return Choices(tuple(map(scene.agent, others)), most, tuple(ways))


_POSSIBLE: Mapping[Kind, Callable[[GroupState, AgentId, datetime], object]] = {
    Pause: lambda state, agent, _at: state.tasks_left(agent),
    ConcludeGroupDiscussion: lambda state, agent, _at: not state.tasks_left(agent),
    Thinking: prolonged_until,
    TaskQuestion: lambda state, agent, _at: any(questions.may_ask(task, agent) for task in state.open_tasks),
}
"""Conditions of the state for kinds that an offer permits."""


def legal_kinds(
    state: GroupState, agent_id: AgentId, at: datetime, policy: Policy | None = None, limits: GroupLimits = UNLIMITED
) -> tuple[Kind, ...]:
    """List the kinds of message that a member may send at a time, given the right content, in the order of the table.

    A kind that is not listed is rejected, with one exception: a pause whose triggers are all closed is accepted while no task is
    open, because it may have crossed their results. It is not listed, because it would only use up a turn.
    """
    phase, kinds = state.phase, set[Kind]()
    if agent_id in state.floor:
        kinds.update((offer(policy, state, agent_id, narrows=False, at=at) or TO_CONCLUDE).kinds)
    for task in state.open_tasks:
        if task.assignee == agent_id:
            kinds.update((InformTaskProgress, InformTaskResult, TaskQuestion))
        elif questions.waits_for(task, agent_id, at):
            kinds.add(TaskDecision)
    possible = [kind for kind in kinds if kind not in _POSSIBLE or _POSSIBLE[kind](state, agent_id, at)]
    return tuple(
        [kind for kind, row in TABLE.items() if kind in possible and phase in row.cells and not exceeded_limit(state, kind, limits)]
    )


def admit(policy: Policy | None, state: GroupState, event: Event) -> Event:
    """Return an event without the words of a pass, a note or an invitation in a node with guards or a review.

    The event is legal without them, and its words pass neither the guards nor the review.
    """
    if policy is None or state.course is None:
        return event
    node = policy.nodes[state.course.node]
    if not (node.guards or node.review):
        return event
    match event:
        case MemberJoined():
            return event.model_copy(update={"why": ""})
        case Said(message=Message(payload=Thinking() | Pass(cause=PassCause.NOTHING_TO_ADD) as payload) as message):
            silent = payload.model_copy(update={"content" if isinstance(payload, Pass) else "note": ""})
            return event.model_copy(update={"message": message.model_copy(update={"payload": silent})})
    return event


def check(state: GroupState, event: Event, policy: Policy | None, limits: GroupLimits = UNLIMITED) -> tuple[Row, Cell]:
    """Return the row and cell of an event that is in time, from the right sender, and permitted by the policy.

    Raises:
        IllegalEventError: The event is not legal now.
    """
    phase, row = state.phase, TABLE[kind_of(event)]
    if isinstance(state.stage, Ended):
        raise IllegalEventError(RejectionCode.GROUP_ENDED, f"The group {state.comm_id} has ended ({phase}).")
    if None in row.cells:
        raise IllegalEventError(RejectionCode.GROUP_EXISTS, f"The group {state.comm_id} has been launched already.")
    if event.at >= state.limits.deadline and isinstance(event, Said | SubgroupOpened):
        raise IllegalEventError(RejectionCode.TOO_LATE, f"The deadline of {state.comm_id} has passed.")
    _check_sender(state, event, row, policy)
    cell = row.cells.get(phase)
    if cell is None:
        raise IllegalEventError(RejectionCode.WRONG_PHASE, f"{row.name} is not legal while {phase}.")
    payload = event.message.payload if isinstance(event, Said) else None
    if isinstance(event, Said) and row.sender is Sender.FLOOR_HOLDER:
        _check_message(state, event, policy)
    elif isinstance(event, MemberJoined):
        _check_invitation(state, event, policy)
    if rejected := exceeded_limit(state, row.kind, limits, payload):
        raise rejected
    return row, cell


def _check_sender(state: GroupState, event: Event, row: Row, policy: Policy | None) -> None:
    """Reject a message of another group, and an event of a member that needs the floor and does not have it."""
    if isinstance(event, Said):
        header = event.message.header
        sender, turn = header.sender, header.turn
        if header.comm_id != state.comm_id:
            raise IllegalEventError(RejectionCode.WRONG_GROUP, f"The message is for {header.comm_id}, not {state.comm_id}.")
    elif isinstance(event, (MemberJoined, RepetitionRefused, MessageRefused)):
        sender, turn = event.by, event.turn
    else:
        return
    speaks = sender in state.floor
    if not (speaks or state.is_member(sender)):
        raise IllegalEventError(RejectionCode.NOT_A_MEMBER, f"{sender} is no member of {state.comm_id}.")
    if row.sender is Sender.ASSIGNER and sender not in state.hearing:
        raise IllegalEventError(RejectionCode.NOT_YOUR_TASK, f"{sender} was removed, and may answer no task.")
    if row.sender in (Sender.ASSIGNEE, Sender.ASSIGNER):
        return
    if turn != state.turn:
        raise IllegalEventError(RejectionCode.STALE_TURN, f"Turn {turn} is not the current one; that is {state.turn}.")
    if not speaks:
        holds = "Others hold" if hides(policy) else f"{', '.join(state.floor) or 'No member'} holds"
        raise IllegalEventError(RejectionCode.NOT_YOUR_FLOOR, f"{holds} the floor, not {sender}.")


def _able_roles(policy: Policy, roles: Iterable[Name], member: Member) -> tuple[Name, ...]:
    """Return the roles in which a member may invite agents. None of them hears more than the member."""
    able = policy.able(roles)
    more = policy.hearing_more(member.roles) if able else ()
    return tuple([role for role in able if policy.role_numbers[role] not in more])


def _check_invitation(state: GroupState, joined: MemberJoined, policy: Policy | None) -> None:
    """Reject an invitation of a member, or in a role that is not offered."""
    if state.is_member(joined.card.agent_id):
        why = f"{joined.card.agent_id} is in the group, or was removed from it."
        raise IllegalEventError(RejectionCode.NO_CHANGE, why)
    offered = None if policy is None else offer(policy, state, joined.by, narrows=False, chooses=False)
    if offered is not None and joined.role not in (able := offered.invites):
        why = f"Name the role of the new member: one of {', '.join(able)}." if able else "No member may be invited now."
        raise IllegalEventError(RejectionCode.OFF_COURSE, why)


_ALWAYS_OFFERED = (Pass, Thinking, Conclusion)
"""Kinds that are legal for any member with the floor in the phases of their row."""


def _check_message(state: GroupState, said: Said, policy: Policy | None) -> None:
    """Reject a message that is not part of its sender's offer."""
    payload, sender = said.message.payload, said.message.header.sender
    if isinstance(payload, Discussion):
        narrows, ends = bool(payload.to), payload.go == END
        chooses = bool(payload.go or payload.next_speaker or payload.next_speakers or payload.question)
    elif isinstance(payload, _ALWAYS_OFFERED):
        return
    else:
        narrows, chooses = False, isinstance(payload, ConcludeGroupDiscussion)
        ends = chooses
    offered = offer(policy, state, sender, narrows=narrows, chooses=chooses, at=said.at)
    assert offered is not None, "a member with the floor has an offer"
    if ends and (left := state.tasks_left(sender)):
        raise IllegalEventError(RejectionCode.TASKS_OPEN, f"Tasks are still open: {', '.join(task.task_id for task in left)}.")
    if isinstance(payload, Discussion):
        check_discussion(offered, payload)
    elif isinstance(payload, Decision):
        check_decision(state, payload)
    else:
        _check_work(offered, payload)
    if not offered.tasks and rejects_of(payload) and getattr(payload, "conclusion", None) is None:
        why = "No result is rejected here: the node lacks `tasks`. Say what is wrong with it."
        raise IllegalEventError(RejectionCode.OFF_COURSE, why)


def _check_work(offered: Offer, said: Payload) -> None:
    """Reject tasks, pauses, questions to the user and ends that are not offered, or words that a guard rejects."""
    why = ""
    match said:
        case AskUser() if not offered.asks:
            why = "No member asks the user here: the node lacks `asks`."
        case SyncTaskAssignment() | AsyncTaskAssignment() | Pause() if not offered.tasks:
            why = "No member assigns tasks or waits for tasks here: the node lacks `tasks`."
        case ConcludeGroupDiscussion() if END not in offered.go:
            why = "The policy ends the discussion, and offers you no end now."
        case ConcludeGroupDiscussion() if offered.reviewed:
            why = f"Your message is reviewed first: end the discussion by a message with `go` = {END}."
        case ConcludeGroupDiscussion(conclusion=Conclusion()) if not offered.may_conclude:
            why = "Only the leader states the conclusion; end the discussion without one."
    if why:
        raise IllegalEventError(RejectionCode.OFF_COURSE, why)
    if offered.guards:
        _check_guards(offered, said)


def check_discussion(offered: Offer, said: Discussion) -> None:
    """Reject a message that a member is not offered.

    Raises:
        IllegalEventError: The error names the fault.
    """
    if offered.again:
        if digest_of(said) != offered.again:
            why = "Your draft has passed: send it again unchanged, and nothing else."
            raise IllegalEventError(RejectionCode.OFF_COURSE, why)
        return
    names = said.next_speakers or (() if said.next_speaker is None else (said.next_speaker,))
    if offered.say is not None:
        more = names or said.go is not None or said.fields or said.question or said.to or said.writes
        if more or said.content != offered.say:
            raise IllegalEventError(RejectionCode.BAD_OPENING, f"The node opens with these words and nothing else: {offered.say}")
    if (names or offered.must_name) and (why := _wrong_names(offered, said, names)):
        raise IllegalEventError(RejectionCode.BAD_NEXT_SPEAKER, why)
    if said.go is not None and (names or said.go not in offered.go):
        legal = f"choose one of {', '.join(offered.go)}" if offered.go else "the policy selects the exit"
        wrong = f"You may not choose the exit to {said.go}; {legal}."
        why = wrong if said.go not in offered.go else "Choose a next speaker or an exit, and not both."
        raise IllegalEventError(RejectionCode.BAD_EXIT, why)
    if said.question:
        _check_question(offered, said)
    _check_content(offered, said)


def _check_question(offered: Offer, said: Discussion) -> None:
    """Reject a question without members to ask, or that cannot be answered."""
    if not offered.may_ask:
        why = "You cannot ask a question here: only a hub may ask several members that it names."
        raise IllegalEventError(RejectionCode.BAD_FORM, why)
    faults = [] if len({one.name for one in said.question}) == len(said.question) else ["two fields have the same name"]
    faults += [f"the field {one.name!r} has a `role`, which only policies have" for one in said.question if one.role is not None]
    if not said.next_speakers:
        faults.append("a question needs `next_speakers`")
    if faults:
        raise IllegalEventError(RejectionCode.BAD_FORM, f"This cannot be asked: {'; '.join(faults)}.")


def _check_content(offered: Offer, said: Discussion) -> None:
    """Reject a message whose addressees, words, fields or board texts the node does not permit."""
    if said.to and (wrong := [name for name in said.to if name not in offered.addressees]):
        heard = f"hearers: {', '.join(offered.addressees)}" if offered.addressees else "it cannot be narrowed: leave `to` out"
        raise IllegalEventError(RejectionCode.BAD_ADDRESSEE, f"{', '.join(wrong)} would not hear this; {heard}.")
    if offered.guards:
        _check_guards(offered, said)
    if offered.form or said.fields:
        check_fields(offered.form, said.fields)
    if said.writes and (unknown := [name for name in said.writes if name not in offered.writes]):
        known = f"choose of {', '.join(offered.writes)}" if offered.writes else "leave `writes` out"
        raise IllegalEventError(RejectionCode.BAD_FORM, f"No text {', '.join(unknown)} of the board is written here; {known}.")


def _wrong_names(offered: Offer, said: Discussion, names: Sequence[AgentId]) -> str:
    """Return why members cannot be the next speakers; empty if they can."""
    able, most = offered.next_speakers, offered.most_named
    if (wrong := [name for name in names if name not in able]) or (offered.must_name and not names):
        legal = "no other member is in reach" if offered.must_name else "the policy selects it: name no member"
        legal = f"name one of {', '.join(able)}" if able else legal
        return f"{', '.join(wrong) or 'No member'} cannot be the next speaker; {legal}."
    if said.next_speakers and said.next_speaker is not None:
        return "Name one next speaker, or several that speak in parallel, and not both."
    if len(set(names)) < len(names):
        return "Name each of them once."
    if said.next_speakers and (len(names) > most or (most == 1 and not offered.must_name)):
        return f"At most {most} members can speak in parallel here." if most > 1 else "Name one member, as `next_speaker`."
    return ""


def check_decision(state: GroupState, decided: Decision) -> None:
    """Reject a decision that is no option, or names the wrong members.

    Raises:
        IllegalEventError: The error names the options, or the members that may be named.
    """
    stage, choice, named = state.stage, decided.choice, decided.members
    assert isinstance(stage, Asking)
    names, legal = stage.about == "watch" and choice in NAMING, nameable(state, choice)
    why = ""
    if choice not in stage.options:
        why = f"{choice!r} is no option: {', '.join(stage.options)}."
    elif named and not names:
        why = f"{choice} names no member: leave `members` out."
    elif names and not ({*named} and {*named} <= {*legal}):
        why = f"Name the members for {choice} in `members`: some of {', '.join(legal)}."
    elif stage.about == "watch" and choice == ADD:
        why = "To add a member, invite it; the invitation is your answer."
    elif choice == "hint" and names and not decided.content.strip():
        why = "A hint needs a text, as `content`."
    if why:
        raise IllegalEventError(RejectionCode.BAD_DECISION, why)


def _check_guards(offered: Offer, said: Payload) -> None:
    """Reject words that a guard of the node rejects.

    Guards check no options and names of members in fields, because they are not the speaker's words.
    """
    content, texts = _collect_texts(offered, said)
    for guard in offered.guards:
        if content or isinstance(said, Discussion) or not guard.not_empty:
            if why := guard.objection(content, texts):
                raise IllegalEventError(RejectionCode.GUARDED, f"This message is not allowed here: {why}.")


def _collect_texts(offered: Offer, said: Payload) -> tuple[str, list[str]]:
    """Return the content of a message, and its further texts."""
    texts = [one.why for one in rejects_of(said)]
    match said:
        case Discussion(content=content):
            filled = [said.fields.get(one.name) for one in offered.form if one.kind == "text"]
            options = [option for field in said.question for option in field.options]
            return content, [*texts, *options, *(one for one in filled if isinstance(one, str)), *said.writes.values()]
        case SyncTaskAssignment(content=content) | AsyncTaskAssignment(content=content):
            return content, [*texts, *(text for task in said.tasks for text in (task.task_desc, task.task_abstract))]
        case AskUser(text=content):
            return content, [*texts, *said.options, said.default]
        case ConcludeGroupDiscussion(conclusion=Conclusion(content=content)):
            return content, [*texts, said.content]
        case ConcludeGroupDiscussion(content=content) | Pause(content=content):
            return content, texts
    return "", texts
