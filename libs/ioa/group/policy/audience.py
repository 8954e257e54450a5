"""Who is told what under a policy, and what a member may see of its group.

`audience` and `noticed` are the stamp of an entry, and `view_for` is the only way out of it: what a member is pushed, answered and
synchronised. That something happened, when, and how many turns it took is hidden from no member, and neither is who is in the
group, and who was removed. What it cost is, but for tenths of the budget: how long a prompt was tells who has heard what others
have not.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence

from ioa.group import forms
from ioa.group.budget import in_tenths
from ioa.group.events import (
    Entry,
    Event,
    GroupLaunched,
    MemberJoined,
    MessageRefused,
    QuestionAnswered,
    RepetitionRefused,
    Said,
    SubgroupAsked,
    SubgroupClosed,
    SubgroupOpened,
    TimerFired,
    Unheard,
)
from ioa.group.policy.casting import scene_of
from ioa.group.policy.costless import costless
from ioa.group.policy.hearing import hearing, hears, hears_all, hides, is_scoped, members_known, sitting_apart, told_of_tasks
from ioa.group.policy.offer import offer_in
from ioa.group.policy.review import is_draft
from ioa.group.rejection import IllegalEventError, RejectionCode
from ioa.group.state import (
    Asking,
    Assigned,
    Awaiting,
    AwaitingAcks,
    Charter,
    Choices,
    Concluding,
    Course,
    Discussing,
    Elsewhere,
    Ended,
    Gathering,
    GroupState,
    Member,
    OpenTask,
    Paused,
    Task,
    WaitingTask,
)
from ioa.protocol.goals import Degraded
from ioa.protocol.ids import AgentId, TaskId
from ioa.protocol.messages import (
    TASK_REPORTS,
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
    Payload,
    Phase,
    SyncTaskAssignment,
    TaskQuestion,
)
from ioa.protocol.policy import Node, Policy
from ioa.protocol.usage import NOTHING


def audience(policy: Policy | None, state: GroupState, event: Event) -> tuple[AgentId, ...]:
    """Return who is told of an event, in the order of joining: who is removed by it for the last time.

    All hear the launch, timers, who joins, is lost or returns, and the conclusion; a decision and what it was refused only who
    hears all; the answer to a question who has heard that; and what comes of a task who was told of it.

    Args:
        policy: What leads the group.
        state: The group before the event.
        event: What happened.
    """
    if isinstance(event, MemberJoined):
        return (*state.hearing, event.card.agent_id)
    if policy is None or not hides(policy):
        return state.hearing
    if state.tasks and (task := _task_of(state, event)) is not None:
        return tuple([one for one in state.hearing if state.is_told_of(one, task)])
    match event:
        case Said(message=message):
            return _told(policy, state, message)
        case MessageRefused(by=by) | RepetitionRefused(by=by):
            return _besides(policy, state, by)
        case QuestionAnswered() if isinstance(state.stage, Awaiting):
            asker = state.members[state.number_of(state.stage.asker)]
            return tuple([one.agent_id for one in hearing(policy, state, asker, state.members)])
        case _:
            return state.hearing


def noticed(policy: Policy | None, before: GroupState, after: GroupState, told: tuple[AgentId, ...]) -> tuple[AgentId, ...]:
    """Return who is not told of an event, and has to know of it.

    It has the floor since, or has it no more, or its task was taken from it, or it is removed, or all is over.
    """
    if not hides(policy):
        return ()
    is_over = isinstance(after.stage, Ended)
    staying = set(after.hearing)
    return tuple(
        [
            agent_id
            for agent_id in before.hearing
            if agent_id not in told and (is_over or agent_id not in staying or _duty(before, agent_id) != _duty(after, agent_id))
        ]
    )


def chain_after(seq: int, entry: Entry) -> tuple[int, ...]:
    """Return for each member the last entry that it may see of a log which ends with `entry`, and for who joins later."""
    members = entry.state.members
    known = [seq if entry.is_shown_to(member.agent_id) else link for member, link in zip(members, entry.chain, strict=False)]
    later = [seq if entry.is_open else link for link in entry.chain[len(members) :]]
    return (*known, *later)


def chain_of(policy: Policy, state: GroupState, head: tuple[int, Entry] | None) -> tuple[int, ...]:
    """Return the links of an entry that leads to a state, behind the last one of the log."""
    later = (0,) if policy.takes_in else ()
    if head is None:
        return (0,) * len(state.members) + later
    chain = chain_after(*head)
    joined = len(state.members) + len(later) - len(chain)
    return chain + chain[-1:] * joined


def is_withheld(policy: Policy, state: GroupState, event: Event, agent_id: AgentId) -> bool:
    """Whether a member is not shown yet what it is told of: an answer of another one beside whom it is still to speak.

    Args:
        policy: What leads the group.
        state: Where the group stands now.
        event: What happened in the meantime.
        agent_id: The member.
    """
    if not isinstance(event, Said) or not isinstance(event.message.payload, Discussion | Pass):
        return False
    header = event.message.header
    return header.sender != agent_id and may_be_withheld(policy, state, header.turn, agent_id)


def may_be_withheld(policy: Policy, state: GroupState, turn: int, agent_id: AgentId) -> bool:
    """Whether a member is not shown yet what others answer in a turn."""
    stage = state.stage
    if not isinstance(stage, Gathering) or turn < (stage.begun or state.turn):
        return False
    return agent_id in sitting_apart(policy, state)


def check_floor(policy: Policy, state: GroupState, agent_id: AgentId) -> None:
    """Refuse a message of a member that hears nothing of where the group is, in words that tell nothing of it.

    Raises:
        IllegalEventError: It hears nothing.
    """
    if state.is_member(agent_id) and not _sees_stage(policy, state, state.members[state.number_of(agent_id)]):
        raise IllegalEventError(RejectionCode.NOT_YOUR_FLOOR, f"Others hold the floor, not {agent_id}.")


def view_for(policy: Policy | None, entry: Entry, agent_id: AgentId, joined_as: Sequence[int] = ()) -> Entry:
    """Return an entry as a member is shown it, that is shown it at all.

    Args:
        policy: What leads the group.
        entry: What happened, and where it led.
        agent_id: The member.
        joined_as: Its roles, if it has joined since.
    """
    if policy is None or not entry.chain:
        return entry
    event: Event = entry.event
    if agent_id not in entry.audience and entry.state.is_member(agent_id):
        event = Unheard(at=event.at)
    elif isinstance(event, GroupLaunched):
        event = event.model_copy(update={"charter": charter_for(event.charter, agent_id, joined_as)})
    elif isinstance(event, TimerFired) and event.heard:
        known = [one for one in event.heard if entry.state.task_told_to(agent_id, one.task_id) is not None]
        event = event.model_copy(update={"heard": tuple(known)})
    elif (passed := _failure_of_another(event, agent_id)) is not None:
        event = passed
    if not _hears_costs(policy, entry.state, agent_id):
        event = _without_costs(event, agent_id)
    told = entry.audience if set(entry.audience).issuperset(entry.state.hearing) else ()
    state = seen_by(policy, entry.state, agent_id)
    shown = {"event": event, "audience": told, "noticed": (), "chain": (), "state": state}
    return entry.model_copy(update=shown)


def _with_header(said: Said, changed: Mapping[str, object]) -> Said:
    message = said.message
    header = message.header.model_copy(update=changed)
    return said.model_copy(update={"message": message.model_copy(update={"header": header})})


def _hears_costs(policy: Policy, state: GroupState, agent_id: AgentId) -> bool:
    """Whether a member is told what it costs that others speak: only if nothing is kept from it."""
    if not hides(policy):
        return True
    return state.is_member(agent_id) and hears_all(policy, state.members[state.number_of(agent_id)])


_OF_THE_SENDER: Mapping[str, object] = {
    "state": Phase.DISCUSSING,
    "after": 0,
    "causation_id": None,
    "usage": None,
    "overhead": None,
    "calls": (),
}
"""What a header says of how much its sender knows and has read, with what is said in its place."""


def _without_costs(event: Event, agent_id: AgentId) -> Event:
    """Return an event without what it has cost others, and without how much they had heard by then."""
    match event:
        case GroupLaunched():
            return event.model_copy(update={"usage": NOTHING, "overhead": None, "calls": ()})
        case SubgroupClosed():
            return event.model_copy(update={"usage": NOTHING})
        case Said(message=message) if message.header.sender != agent_id:
            said = _with_header(event, _OF_THE_SENDER)
            payload = _report_without_costs(message.payload)
            if payload is message.payload:
                return said
            return said.model_copy(update={"message": said.message.model_copy(update={"payload": payload})})
        case _:
            return event


def _report_without_costs(payload: Payload) -> Payload:
    match payload:
        case InformTaskProgress():
            return payload.model_copy(update={"usage": None})
        case InformTaskResult():
            return payload.model_copy(update={"usage": None, "approach_usage": None, "calls": ()})
        case _:
            return payload


def _failure_of_another(event: Event, agent_id: AgentId) -> Said | None:
    """Return a turn that somebody else could not use without the reasons, which speak of what that one alone was shown."""
    if not isinstance(event, Said) or event.message.header.sender == agent_id:
        return None
    said = event.message.payload
    if not isinstance(said, Pass) or said.cause is PassCause.NOTHING_TO_ADD or not said.content:
        return None
    message = event.message.model_copy(update={"payload": said.model_copy(update={"content": ""})})
    return event.model_copy(update={"message": message})


def shares_view(policy: Policy, entry: Entry, agent_id: AgentId) -> Hashable:
    """Return a key that is equal for members with an equal view of an entry."""
    state = entry.state
    number, course = state.number_of(agent_id), state.course
    member, apart = state.members[number], agent_id in sitting_apart(policy, state)
    own = agent_id in state.floor or policy.counts_totals or (state.tally is not None and state.tally.by == agent_id)
    if course is not None and not own:
        hearers = policy.hearers(course.node, member.roles)  # who does not hear others of its roles knows of itself alone
        has_drafted = course.draft is not None and course.draft.by == number
        own = has_drafted or (hearers is not None and hearers.isdisjoint(member.roles))
    is_told_of = state.telling(agent_id)
    untold = tuple([one for one in (*state.tasks, *state.folded) if not is_told_of(one)])
    own = own or (isinstance(entry.event, Said) and entry.event.message.header.sender == agent_id)
    own = own or any(isinstance(task, OpenTask) and task.assignee == agent_id and task.spent != NOTHING for task in state.tasks)
    own = own or (bool(policy.secrets) and any(task.earshot for task in (*state.tasks, *state.folded)))
    return member.roles, member.removed, agent_id in entry.audience, apart, agent_id if own else "", tuple(map(id, untold))


def seen_by(policy: Policy, state: GroupState, agent_id: AgentId) -> GroupState:
    """Return a group's state as a member may see it; what it has seen before it sees in the same way."""
    if not is_scoped(policy) or (state.course is not None and not state.course.policy):
        return state  # a view is not judged once more, by less than the router knows
    if not state.is_member(agent_id):
        return _before_joining(policy, state, agent_id)
    me = state.members[state.number_of(agent_id)]
    apart = agent_id in sitting_apart(policy, state)
    if hears_all(policy, me) or not policy.hides:
        return _unanswered(state) if apart else state
    shown = _shared_with(policy, state, me)
    stage, course = state.stage, state.course
    if isinstance(stage, Ended) and stage.degraded is not None:
        shown["stage"] = stage.model_copy(update={"degraded": _lacks_for(state, stage.degraded, agent_id)})
    if isinstance(stage, Concluding | Ended | Elsewhere) or course is None:
        return state.model_copy(update={**shown, "course": None})
    visible = _visible(policy, state, course, me)
    if not visible:
        return state.model_copy(update={**shown, **_elsewhere(state)})
    if isinstance(stage, Discussing) and stage.holder != agent_id:
        shown["stage"] = stage.model_copy(update={"repeated": None})
    elif isinstance(stage, Gathering):
        seats = tuple([seat for seat in stage.seats if seat.agent_id in visible])
        away = tuple([one for one in stage.away if one == agent_id])
        shown["stage"] = _blank(stage).model_copy(update={"seats": seats, "away": away})
    elif isinstance(stage, Paused):
        triggers = tuple([one for one in stage.triggers if state.task_told_to(agent_id, one) is not None])
        shown["stage"] = stage.model_copy(update={"triggers": triggers})
    shown["course"] = _course_for(policy, state, course, me)
    return state.model_copy(update=shown)


def _before_joining(policy: Policy, state: GroupState, agent_id: AgentId) -> GroupState:
    """Return a state as who joins later may see it: who was there, and no more, if anything is kept from anybody."""
    if not policy.hides:
        return state
    shown = _shared_with(policy, state, Member(agent_id=agent_id))
    return state.model_copy(update={**shown, **_elsewhere(state), "tasks": (), "folded": ()})


def _shared_with(policy: Policy, state: GroupState, me: Member) -> dict[str, object]:
    """Return what a member sees of members and of tasks, wherever the group is; others' affairs are taken out."""
    return {
        "members": members_known(policy, state, me),
        "monologue": None,
        "passes": (),
        "decisions": (),
        "dearest_turn": 0,
        "tally": state.tally if state.tally is not None and state.tally.by == me.agent_id else None,
        **_tasks_for(policy, state, me.agent_id),
    }


def _elsewhere(state: GroupState) -> dict[str, object]:
    """Return what is seen of where a group stands by who hears nothing of it."""
    return {"course": None, "turn": 0, "stage": Elsewhere(until=state.limits.deadline)}  # any nearer time would tell who speaks


def charter_for(charter: Charter, agent_id: AgentId, joined_as: Sequence[int] = ()) -> Charter:
    """Return a charter as a member may see it, also one that has joined in some roles since.

    It lacks the holders and the prompts of secret roles, and the words of nodes that the member neither speaks in nor hears.
    """
    policy = charter.policy
    held = [*joined_as, *(number for number, casting in enumerate(charter.cast) if agent_id in casting.members)]
    if policy is None or not policy.hides or not policy.hearing_all.isdisjoint(held):
        return charter
    hidden = policy.secrets.difference(held)
    roles = [
        role.model_copy(update={"prompt": "", "memory": None}) if number in hidden else role
        for number, role in enumerate(policy.roles)
    ]
    nodes = [_node_for(policy, node, number, held) for number, node in enumerate(policy.nodes)]
    cast = [one.model_copy(update={"members": ()}) if number in hidden else one for number, one in enumerate(charter.cast)]
    shown = policy.model_copy(update={"roles": tuple(roles), "nodes": tuple(nodes)})
    return charter.model_copy(update={"policy": shown, "cast": tuple(cast)})


def _told(policy: Policy, state: GroupState, message: Message) -> tuple[AgentId, ...]:
    sender, payload, course = message.header.sender, message.payload, state.course
    if isinstance(payload, ConcludeGroupDiscussion | Conclusion) or isinstance(state.stage, Concluding) or course is None:
        return state.hearing
    speaker = state.members[state.number_of(sender)]
    if isinstance(state.stage, Asking):
        if state.stage.about == "review":
            return _reviewing(policy, state, course)
        hinted = payload.members if isinstance(payload, Decision) and payload.choice == "hint" else ()
        return _besides(policy, state, sender, *hinted)
    if is_draft(policy, state, speaker):
        return _reviewing(policy, state, course, speaker)
    if isinstance(payload, SyncTaskAssignment | AsyncTaskAssignment):
        return told_of_tasks(policy, state, message)
    told = hearing(policy, state, speaker, state.members)
    if only := payload.to if isinstance(payload, Discussion) else ():
        told = [one for one in told if one.agent_id in only or one is speaker or hears_all(policy, one)]
    return tuple([one.agent_id for one in told])


def _reviewing(policy: Policy, state: GroupState, course: Course, author: Member | None = None) -> tuple[AgentId, ...]:
    """Return who is told of a draft and of what becomes of it: its author, those that review it, and who hears all."""
    review = policy.nodes[course.node].review
    assert review is not None
    if author is None and course.draft is not None:
        author = state.members[course.draft.by]
    role = policy.role_numbers[review.by]
    return tuple(
        [
            one.agent_id
            for one in state.members
            if not one.removed and (one is author or role in one.roles or hears_all(policy, one))
        ]
    )


def _besides(policy: Policy, state: GroupState, *agents: AgentId) -> tuple[AgentId, ...]:
    """Return members and who hears all."""
    return tuple([one.agent_id for one in state.members if one.agent_id in agents or hears_all(policy, one)])


def _duty(state: GroupState, agent_id: AgentId) -> tuple[int, frozenset[TaskId]]:
    """Return the turn in which a member is to speak, 0 if it is not, and the tasks that it is to do."""
    turn = state.turn if agent_id in state.floor else 0
    if not state.tasks:
        return turn, frozenset()
    return turn, frozenset([task.task_id for task in state.tasks if isinstance(task, OpenTask) and task.assignee == agent_id])


def _task_of(state: GroupState, event: Event) -> Task | None:
    """Return the task that an event is about, and nothing else."""
    match event:
        case Said(message=message):
            payload = message.payload
            task_id = payload.task_id if isinstance(payload, (*TASK_REPORTS, TaskQuestion, Decision)) else None
        case SubgroupOpened(task_id=task_id) | SubgroupClosed(task_id=task_id) | SubgroupAsked(task_id=task_id):
            pass
        case QuestionAnswered(task_id=task_id):
            pass
        case _:
            return None
    return None if task_id is None else state.task(task_id)


def _sees_stage(policy: Policy, state: GroupState, me: Member) -> bool:
    """Whether a member sees where the group is: `seen_by` shows it something else than `Elsewhere`."""
    stage, course = state.stage, state.course
    if isinstance(stage, Concluding | Ended | Elsewhere) or course is None or not course.policy:
        return not isinstance(stage, Elsewhere)
    return hears_all(policy, me) or bool(_visible(policy, state, course, me))


def _visible(policy: Policy, state: GroupState, course: Course, me: Member) -> Sequence[AgentId]:
    """Return those of who is to speak, or waits to have the floor again, that a member sees."""
    match state.stage:
        case Awaiting(asker=waiter) | Paused(pauser=waiter) | Assigned(assigner=waiter) | AwaitingAcks(assigner=waiter):
            speaking: tuple[AgentId, ...] = (waiter,)
        case _:
            speaking = state.floor
    own = me.agent_id
    return [one for one in speaking if one == own or _sees_floor(policy, state, course, me, state.members[state.number_of(one)])]


def _sees_floor(policy: Policy, state: GroupState, course: Course, member: Member, speaker: Member) -> bool:
    """Whether a member that is not to speak sees who is: if it will hear it. A decision is heard by who hears all."""
    return not isinstance(state.stage, Asking) and hears(policy, course, member, speaker)


def _tasks_for(policy: Policy, state: GroupState, agent_id: AgentId) -> Mapping[str, object]:
    """Return what the state holds of tasks that a member is told of, and of what was spent.

    What its own tasks have cost it has to know, to go on counting. All else is told in tenths, with what nested teams were lent, so
    that no difference tells what somebody has cost. What teams of others may use counts as used, by nobody. Who else is told of a
    task tells who holds a secret role that has heard it being given out: where there are such, a member is shown itself alone.
    """
    shown: dict[str, object] = {"spent": in_tenths(state)}
    if not state.tasks and not state.folded and not state.loans:
        return shown
    is_told_of = state.telling(agent_id)
    known = [task for task in state.tasks if is_told_of(task)]
    known = [task if task.assignee == agent_id else costless(task) for task in known]
    folded = [one for one in state.folded if is_told_of(one)]
    shown["tasks"] = tuple(known)
    lent = list(state.loans)
    if len(known) < len(state.tasks) or len(folded) < len(state.folded):
        teams = {task.subgroup for task in known if not isinstance(task, WaitingTask)}
        lent = [loan for loan in state.loans if loan.subgroup in teams]
        shown["nested_turns"] = state.nested_turns + sum([loan.turns for loan in state.loans if loan.subgroup not in teams])
        shown["folded"] = tuple(folded)
        shown["lacks"] = None if state.lacks is None else _lacks_for(state, state.lacks, agent_id)
    shown["loans"] = tuple([loan.model_copy(update={"tokens": None, "cost_micros": None}) for loan in lent])
    if policy.secrets and state.is_member(agent_id):
        alone = {"earshot": (state.number_of(agent_id),)}
        shown["tasks"] = tuple([task.model_copy(update=alone) if task.earshot else task for task in known])
        shown["folded"] = tuple([one.model_copy(update=alone) if one.earshot else one for one in folded])
    return shown


def _lacks_for(state: GroupState, lacks: Degraded, agent_id: AgentId) -> Degraded:
    """Return what a conclusion may lack, with those of its tasks that a member is told of."""
    known = [
        one for one in lacks.tasks if state.task_told_to(agent_id, one) or (not state.task(one) and state.is_folded(one, agent_id))
    ]
    return lacks.model_copy(update={"tasks": tuple(known)})


def _unanswered(state: GroupState) -> GroupState:
    """Return the state without what others have answered beside a member that is still to speak."""
    stage, course = state.stage, state.course
    assert isinstance(stage, Gathering) and course is not None
    return state.model_copy(update={"stage": _blank(stage), "course": course.model_copy(update={"told": (), "board": ()})})


def _blank(stage: Gathering) -> Gathering:
    """Return a gathering without what came of it so far."""
    if stage.votes is None:
        return stage
    return stage.model_copy(update={"votes": forms.no_votes(stage.votes.turn, stage.votes.by, stage.form)})


def _course_for(policy: Policy, state: GroupState, course: Course, me: Member) -> Course:
    """Return the course in a node that a member hears, without what others have filled in, and with what it may choose."""
    heard = [hears(policy, course, me, one) for one in state.members]
    mine = me.agent_id == state.floor_holder
    offered = course.offered
    if mine and offered is None:
        offer = offer_in(scene_of(policy, state, course), state, me.agent_id)
        offered = Choices(offer.next_speakers, offer.most_named, offer.go)
    number, review = state.number_of(me.agent_id), policy.nodes[course.node].review
    reviews = review is not None and policy.role_numbers[review.by] in me.roles
    shown: Mapping[str, object] = {
        "policy": "",
        "visits": tuple([visits if node == course.node else 0 for node, visits in enumerate(course.visits)]),
        "taken": tuple([turns if known else 0 for turns, known in zip(course.taken, heard, strict=True)]),
        "last": course.last if course.last is not None and heard[course.last] else None,
        "opening": course.opening and mine,
        "total": tuple([turns if one == number else 0 for one, turns in enumerate(course.total)]),
        "told": (),
        "nominated": None,
        "offered": offered,
        "watch": None,
        "entered": (),
        "board": (),
        "draft": course.draft if course.draft is not None and (course.draft.by == number or reviews) else None,
    }
    return course.model_copy(update=shown)


def _node_for(policy: Policy, node: Node, number: int, held: Iterable[int]) -> Node:
    """Return a node as a holder of some roles may see it."""
    speaks = any(policy.role_numbers[name] in held for name in node.roles)
    if speaks:
        return node
    opens, changed = node.opens, dict[str, object]()
    if node.prompt:
        changed["prompt"] = ""
    if node.guards:
        changed["guards"] = ()
    if opens is not None and opens.say:
        hearers = policy.hearers(number, (policy.role_numbers[opens.role],))
        if hearers is not None and hearers.isdisjoint(held):
            changed["opens"] = opens.model_copy(update={"say": ""})
    return node.model_copy(update=changed) if changed else node
