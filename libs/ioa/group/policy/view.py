"""The view of a member: the entries and states that it is pushed, answered and synchronised, built from allowed fields.

Each member sees the time of each event, the number of turns, the members of the group, and the cost.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any

from ioa.group import forms
from ioa.group.events import Entry, Event, GroupLaunched, Said, TimerFired, Unheard
from ioa.group.policy.casting import scene_of
from ioa.group.policy.hearing import as_known, hears, hears_all, sitting_apart
from ioa.group.policy.offer import offer_in
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
    Paused,
    Stage,
    WaitingTask,
)
from ioa.protocol.goals import Degraded
from ioa.protocol.ids import AgentId
from ioa.protocol.messages import Pass, PassCause
from ioa.protocol.policy import Node, Policy
from ioa.protocol.usage import Usage


def view_for(policy: Policy | None, entry: Entry, agent_id: AgentId, joined_as: Sequence[int] = ()) -> Entry:
    """Return the view of an entry that a member may see.

    Args:
        policy: The policy of the group.
        entry: The entry of the log.
        agent_id: The member.
        joined_as: Its roles, if it has joined since.
    """
    if policy is None or not entry.chain:
        return entry
    shown = {
        "event": _event_for(entry, agent_id, joined_as),
        "audience": entry.audience if set(entry.audience).issuperset(entry.state.hearing) else (),
        "noticed": (),
        "chain": (),
        "state": seen_by(policy, entry.state, agent_id),
    }
    return entry.model_copy(update=shown)


def _event_for(entry: Entry, agent_id: AgentId, joined_as: Sequence[int]) -> Event:
    event = entry.event
    if agent_id not in entry.audience and entry.state.is_member(agent_id):
        return Unheard(at=event.at)
    match event:
        case GroupLaunched(charter=charter):
            return event.model_copy(update={"charter": charter_for(charter, agent_id, joined_as)})
        case TimerFired(heard=heard) if heard:
            known = [one for one in heard if entry.state.task_told_to(agent_id, one.task_id) is not None]
            return event.model_copy(update={"heard": tuple(known)})
        case Said(message=message) if message.header.sender != agent_id and isinstance(said := message.payload, Pass):
            if said.cause is PassCause.NOTHING_TO_ADD or not said.content:
                return event
            silent = message.model_copy(update={"payload": said.model_copy(update={"content": ""})})
            return event.model_copy(update={"message": silent})  # the reasons quote what that member alone was shown
        case _:
            return event


def shares_view(policy: Policy, entry: Entry, agent_id: AgentId) -> Hashable:
    """Return a key; members with the same key have equal views of an entry, so that it is encoded once for them."""
    state, event = entry.state, entry.event
    seen = (agent_id in entry.audience, agent_id in sitting_apart(policy, state))
    is_sender = isinstance(event, Said) and event.message.header.sender == agent_id
    if not policy.hides:
        return (*seen, is_sender)
    member, course = state.members[state.number_of(agent_id)], state.course
    hearers = None if course is None else policy.hearers(course.node, member.roles)
    has_own = is_sender or agent_id in state.floor or bool(state.tasks or state.folded or state.loans or policy.counts_totals)
    has_own = has_own or state.tally is not None or (course is not None and course.draft is not None)
    has_own = has_own or (hearers is not None and hearers.isdisjoint(member.roles))  # it sees itself, and not others of its roles
    return (*seen, member.roles, member.removed, agent_id if has_own else "")


def check_floor(policy: Policy, state: GroupState, agent_id: AgentId) -> None:
    """Reject a message of a member that does not see the floor, and reveal nothing about the floor.

    Raises:
        IllegalEventError: The member does not see the floor.
    """
    if not state.is_member(agent_id):
        return
    me, course = state.members[state.number_of(agent_id)], state.course
    if isinstance(state.stage, Concluding | Ended) or (course is not None and not course.policy):
        return
    is_blind = isinstance(state.stage, Elsewhere) or course is None
    if is_blind or not (hears_all(policy, me) or (course is not None and _visible(policy, state, course, me))):
        raise IllegalEventError(RejectionCode.NOT_YOUR_FLOOR, f"Others hold the floor, not {agent_id}.")


def seen_by(policy: Policy, state: GroupState, agent_id: AgentId) -> GroupState:
    """Return the view of a state that a member has, or an agent that has not joined yet; the view of a view is the same view."""
    if not policy.is_scoped or (state.course is not None and not state.course.policy):
        return state
    if not state.is_member(agent_id):
        if not policy.hides:
            return state
        shown = {**_shared_with(policy, state, Member(agent_id=agent_id)), "tasks": (), "folded": (), **_elsewhere(state)}
        return _BLANK.model_copy(update=shown)
    me = state.members[state.number_of(agent_id)]
    if hears_all(policy, me) or not policy.hides:
        return _unanswered(state) if agent_id in sitting_apart(policy, state) else state
    return _BLANK.model_copy(update={**_shared_with(policy, state, me), **_place_of(policy, state, me)})


_NOTHING: Mapping[str, Any] = {}
_BLANK, _BLANK_COURSE = GroupState.model_construct(**_NOTHING), Course.model_construct(**_NOTHING)
"""Views begin with the defaults of all fields, so that a field that is not named here is hidden."""
_KNOWN_TO_ALL = ("comm_id", "goal_id", "user", "owner", "limits", "depth", "parent", "turns_taken", "silences", "ruled")


def _shared_with(policy: Policy, state: GroupState, me: Member) -> dict[str, Any]:
    """Return the fields that a member sees wherever the group is: members, tasks that it knows, and costs."""
    is_told_of = state.telling(me.agent_id)
    known = [task for task in state.tasks if is_told_of(task)]
    folded = [one for one in state.folded if is_told_of(one)]
    if policy.secrets and state.is_member(me.agent_id):  # the other members that know of a task may hold a secret role
        alone = {"earshot": (state.number_of(me.agent_id),)}
        known = [task.model_copy(update=alone) if task.earshot else task for task in known]
        folded = [one.model_copy(update=alone) if one.earshot else one for one in folded]
    teams = {task.subgroup for task in known if not isinstance(task, WaitingTask)}
    hidden = [loan for loan in state.loans if loan.subgroup not in teams]
    lent = Usage(tokens_in=sum([one.tokens or 0 for one in hidden]), cost_micros=sum([one.cost_micros or 0 for one in hidden]))
    return {
        **{name: getattr(state, name) for name in _KNOWN_TO_ALL},
        "members": tuple([as_known(policy, one, me) for one in state.members]) if policy.secrets else state.members,
        "tasks": tuple(known),
        "folded": tuple(folded),
        "lacks": None if state.lacks is None else _lacks_for(state, state.lacks, me.agent_id),
        "loans": tuple([loan for loan in state.loans if loan.subgroup in teams]),
        "nested_turns": state.nested_turns + sum([loan.turns for loan in hidden]),
        "spent": state.spent.plus(lent) if hidden else state.spent,
        "tally": state.tally if state.tally is not None and state.tally.by == me.agent_id else None,
    }


def _place_of(policy: Policy, state: GroupState, me: Member) -> Mapping[str, Any]:
    """Return where a member sees the group: turn, stage and course, or that it is elsewhere."""
    stage, course = state.stage, state.course
    if isinstance(stage, Ended) and stage.degraded is not None:
        stage = stage.model_copy(update={"degraded": _lacks_for(state, stage.degraded, me.agent_id)})
    if isinstance(stage, Concluding | Ended | Elsewhere) or course is None:
        return {"turn": state.turn, "stage": stage}
    visible = _visible(policy, state, course, me)
    if not visible:
        return _elsewhere(state)
    return {"turn": state.turn, "stage": _stage_for(state, me, visible), "course": _course_for(policy, state, course, me)}


def _elsewhere(state: GroupState) -> Mapping[str, Any]:
    return {"turn": 0, "stage": Elsewhere(until=state.limits.deadline)}


def _stage_for(state: GroupState, me: Member, visible: Sequence[AgentId]) -> Stage:
    match state.stage:
        case Discussing(holder=holder) as stage if holder != me.agent_id:
            return stage.model_copy(update={"repeated": None})
        case Gathering() as stage:
            seats = tuple([seat for seat in stage.seats if seat.agent_id in visible])
            away = tuple([one for one in stage.away if one == me.agent_id])
            return _blank(stage).model_copy(update={"seats": seats, "away": away})
        case Paused(triggers=triggers) as stage:
            known = tuple([one for one in triggers if state.task_told_to(me.agent_id, one) is not None])
            return stage.model_copy(update={"triggers": known})
        case stage:
            return stage


def _course_for(policy: Policy, state: GroupState, course: Course, me: Member) -> Course:
    """Return the course of a node that a member hears, with the choices of the floor holder for itself."""
    heard = [hears(policy, course, me, one) for one in state.members]
    mine = me.agent_id == state.floor_holder
    offered = course.offered
    if mine and offered is None:
        offer = offer_in(scene_of(policy, state), me.agent_id)
        offered = Choices(offer.next_speakers, offer.most_named, offer.go)
    number, review = state.number_of(me.agent_id), policy.nodes[course.node].review
    reads_draft = course.draft is not None and course.draft.by == number
    reads_draft = reads_draft or (review is not None and policy.role_numbers[review.by] in me.roles)
    shown = {
        "policy": "",
        "leader": course.leader,
        "node": course.node,
        "visits": tuple([visits if node == course.node else 0 for node, visits in enumerate(course.visits)]),
        "turns": course.turns,
        "taken": tuple([turns if known else 0 for turns, known in zip(course.taken, heard, strict=True)]),
        "last": course.last if course.last is not None and heard[course.last] else None,
        "opening": course.opening and mine,
        "total": tuple([turns if one == number else 0 for one, turns in enumerate(course.total)]),
        "offered": offered,
        "struck": course.struck,
        "draft": course.draft if reads_draft else None,
    }
    return _BLANK_COURSE.model_copy(update=shown)


def _visible(policy: Policy, state: GroupState, course: Course, me: Member) -> Sequence[AgentId]:
    """Return the members that must speak, or continue after waiting, among the members that a member hears."""
    match state.stage:
        case Awaiting(asker=waiter) | Paused(pauser=waiter) | Assigned(assigner=waiter) | AwaitingAcks(assigner=waiter):
            speaking: tuple[AgentId, ...] = (waiter,)
        case _:
            speaking = state.floor
    decides = isinstance(state.stage, Asking)
    speakers = [state.members[state.number_of(one)] for one in speaking]
    return [one.agent_id for one in speakers if one.agent_id == me.agent_id or (not decides and hears(policy, course, me, one))]


def _lacks_for(state: GroupState, lacks: Degraded, agent_id: AgentId) -> Degraded:
    """Return the parts that a conclusion may lack, with only the tasks that a member knows."""
    known = [
        one for one in lacks.tasks if state.task_told_to(agent_id, one) or (not state.task(one) and state.is_folded(one, agent_id))
    ]
    return lacks.model_copy(update={"tasks": tuple(known)})


def _unanswered(state: GroupState) -> GroupState:
    """Return a state without what other members have answered in the parallel turn in which a member has yet to speak."""
    stage, course = state.stage, state.course
    assert isinstance(stage, Gathering) and course is not None
    return state.model_copy(update={"stage": _blank(stage), "course": course.model_copy(update={"told": (), "board": ()})})


def _blank(stage: Gathering) -> Gathering:
    if stage.votes is None:
        return stage
    return stage.model_copy(update={"votes": forms.no_votes(stage.votes.turn, stage.votes.by, stage.form)})


def charter_for(charter: Charter, agent_id: AgentId, joined_as: Sequence[int] = ()) -> Charter:
    """Return a charter without the holders and prompts of secret roles, and without the words of nodes that a member does not hear.

    Args:
        charter: The charter of the group.
        agent_id: The member.
        joined_as: Its roles, if it has joined since.
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


def _node_for(policy: Policy, node: Node, number: int, held: Iterable[int]) -> Node:
    if any(policy.role_numbers[name] in held for name in node.roles):
        return node
    changed: dict[str, object] = {"prompt": "", "guards": ()}
    if node.opens is not None:
        hearers = policy.hearers(number, (policy.role_numbers[node.opens.role],))
        if hearers is not None and hearers.isdisjoint(held):
            changed["opens"] = node.opens.model_copy(update={"say": ""})
    return node.model_copy(update=changed)
