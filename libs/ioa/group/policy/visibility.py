"""The view of a member: entries, states and charters that contain only the fields that the member may see.

A member receives every entry of its group. Of an event that it does not hear, it sees the time. Timing, order and cost are hidden
from no member.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

from ioa.group.events import Entry, Event, GroupLaunched, Said, TimerFired, Unheard
from ioa.group.legality import offer
from ioa.group.policy import forms
from ioa.group.policy.hearing import as_known, hears_all, sitting_apart
from ioa.group.policy.position import Choices, Course
from ioa.group.state import Asking, Concluding, Discussing, Elsewhere, Ended, Gathering, GroupState, Member, Waiting
from ioa.protocol.ids import AgentId
from ioa.protocol.messages import Pass, PassCause
from ioa.protocol.policy import Policy
from ioa.protocol.policy_parts import Node
from ioa.protocol.setup.charter import Charter


def view_for(policy: Policy | None, entry: Entry, agent_id: AgentId, joined_as: Sequence[int] = ()) -> Entry:
    """Return an entry as a member sees it; `joined_as` are its roles, if it has joined later."""
    if policy is None or not policy.is_scoped:
        return entry
    told, state = entry.audience, entry.state
    is_heard = agent_id in told
    if not is_heard and not state.is_member(agent_id):
        is_heard = all(one.agent_id in told for one in state.members)
    shown = {
        "event": _event_for(entry, agent_id, joined_as) if is_heard else Unheard(at=entry.event.at),
        "audience": told if is_heard and set(told).issuperset(state.hearing) else (),
        "state": seen_by(policy, state, agent_id),
    }
    return entry.model_copy(update=shown)


def _event_for(entry: Entry, agent_id: AgentId, joined_as: Sequence[int]) -> Event:
    event = entry.event
    match event:
        case GroupLaunched(charter=charter):
            return event.model_copy(update={"charter": charter_for(charter, agent_id, joined_as)})
        case TimerFired():
            return event.model_copy(update={"heard": ()})
        case Said(message=message) if message.header.sender != agent_id and isinstance(said := message.payload, Pass):
            if said.cause is PassCause.NOTHING_TO_ADD or not said.content:
                return event
            silent = message.model_copy(update={"payload": said.model_copy(update={"content": ""})})
            return event.model_copy(update={"message": silent})  # the reasons quote texts that only the sender was shown
        case _:
            return event


def shares_view(policy: Policy | None, entry: Entry, agent_id: AgentId) -> Hashable:
    """Return a key; members with the same key have equal views of an entry, so that it is encoded once for them."""
    if policy is None or not policy.is_scoped:
        return None
    state, event = entry.state, entry.event
    is_sender = isinstance(event, Said) and event.message.header.sender == agent_id
    key = (agent_id in entry.audience, agent_id in sitting_apart(policy, state), is_sender)
    if not policy.hides:
        return key
    me = state.members[state.number_of(agent_id)]
    draft = None if state.course is None else state.course.draft
    is_own = is_sender or agent_id in _awaited(state) or state.tasks or state.tally or draft
    return (*key, me.roles, me.removed, agent_id if is_own else "")


_NOTHING: Mapping[str, Any] = {}
_BLANK = GroupState.model_construct(**_NOTHING)
"""A view is a copy of this state with the allowed fields, in their order."""
_KNOWN_TO_ALL = "comm_id goal_id user owner limits depth parent turn turns_taken nested_turns loans spent silences ruled".split()


def seen_by(policy: Policy, state: GroupState, agent_id: AgentId) -> GroupState:
    """Return a state with the fields that a member may see; an agent that has not joined yet sees what all see."""
    if not policy.is_scoped:
        return state
    me = next((one for one in state.members if one.agent_id == agent_id), None) or Member(agent_id=agent_id)
    if not policy.hides or hears_all(policy, me):
        return _unanswered(state) if agent_id in sitting_apart(policy, state) else state
    return _BLANK.model_copy(update={**_shared_with(policy, state, me), **_place_of(policy, state, me)})


def _shared_with(policy: Policy, state: GroupState, me: Member) -> dict[str, Any]:
    """Return the fields that a member sees wherever the group is: members, tasks that it knows, and costs."""
    fields = state.__dict__
    shown: dict[str, Any] = {name: fields[name] for name in _KNOWN_TO_ALL}
    shown["members"] = as_known(policy, state.members, me)
    shown["tally"] = state.tally if state.tally is not None and state.tally.by == me.agent_id else None
    if state.tasks:
        known = [task for task in state.tasks if state.knows_task(me.agent_id, task)]
        # the other members that know a task may hold a secret role
        alone = {"earshot": (state.number_of(me.agent_id),) if state.is_member(me.agent_id) else ()}
        shown["tasks"] = tuple([task.model_copy(update=alone) if task.earshot else task for task in known])
    return shown


def _place_of(policy: Policy, state: GroupState, me: Member) -> Mapping[str, Any]:
    """Return where a member sees the group: stage and course, or that it is elsewhere."""
    stage, course = state.stage, state.course
    if isinstance(stage, Ended):
        return {"stage": stage.model_copy(update={"degraded": None})}  # it names tasks
    if isinstance(stage, Concluding) or course is None:
        return {"stage": stage}
    if not (floor := _seen_floor(policy, state, me)):
        return {"stage": Elsewhere(until=state.limits.deadline)}
    if isinstance(stage, Gathering):
        seats = tuple([seat for seat in stage.seats if seat.agent_id in floor])
        stage = _blank(stage).model_copy(update={"seats": seats, "away": ()})
    elif isinstance(stage, Waiting):
        known = [one for one in stage.tasks if state.task_told_to(me.agent_id, one) is not None]
        stage = stage.model_copy(update={"tasks": tuple(known)})
    return {"stage": stage, "course": _course_for(policy, state, course, me)}


def _seen_floor(policy: Policy, state: GroupState, me: Member) -> Sequence[AgentId]:
    """Return the members that must speak, or continue after waiting, among the members that a member hears."""
    speaking, course = _awaited(state), state.course
    if isinstance(state.stage, Asking) or course is None or me.removed:
        return [one for one in speaking if one == me.agent_id]
    speakers = [one for one in state.members if one.agent_id in speaking]
    heard = [(one.agent_id, policy.hearers(course.node, one.roles)) for one in speakers]
    return [one for one, roles in heard if one == me.agent_id or roles is None or not roles.isdisjoint(me.roles)]


def _awaited(state: GroupState) -> tuple[AgentId, ...]:
    """Return the members that must speak, or continue after waiting."""
    return (state.stage.waiter,) if isinstance(state.stage, Waiting) else state.floor


def _course_for(policy: Policy, state: GroupState, course: Course, me: Member) -> Course:
    """Return the course of a node that a member hears; the holder of the floor sees its choices, authors and reviewers a draft."""
    mine = me.agent_id == state.floor_holder
    offered, draft, review = course.offered, course.draft, policy.nodes[course.node].review
    if offered is None and mine and isinstance(state.stage, Discussing):
        legal = offer(policy, state, me.agent_id, narrows=False)
        offered = legal and Choices(legal.next_speakers, legal.most_named, legal.go)
    is_reviewer = review is not None and policy.role_numbers[review.by] in me.roles
    return Course.of_valid(
        policy="",
        leader=course.leader,
        node=course.node,
        visits=(),
        opening=course.opening and mine,
        offered=offered,
        struck=course.struck,
        draft=draft if draft is not None and (is_reviewer or state.members[draft.by] is me) else None,
    )


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
    """Return a charter without the holders and prompts of secret roles, and the words of nodes in which a member does not speak.

    `joined_as` are its roles, if it has joined later.
    """
    policy = charter.policy
    held = {*joined_as, *(number for number, casting in enumerate(charter.cast) if agent_id in casting.members)}
    if policy is None or not policy.hides or not policy.hearing_all.isdisjoint(held):
        return charter
    hidden = policy.secrets - held
    silent = {"prompt": "", "memory": None}
    roles = [role.model_copy(update=silent) if number in hidden else role for number, role in enumerate(policy.roles)]
    speaks = [any(policy.role_numbers[name] in held for name in node.roles) for node in policy.nodes]
    nodes = [node if speaks_here else _without_words(node) for node, speaks_here in zip(policy.nodes, speaks, strict=True)]
    cast = [one.model_copy(update={"members": ()}) if number in hidden else one for number, one in enumerate(charter.cast)]
    shown = policy.model_copy(update={"roles": tuple(roles), "nodes": tuple(nodes)})
    return charter.model_copy(update={"policy": shown, "cast": tuple(cast)})


def _without_words(node: Node) -> Node:
    """Return a node as members see it that do not speak in it. They receive its opening words with the opening message."""
    opens = None if node.opens is None else node.opens.model_copy(update={"say": ""})
    return node.model_copy(update={"prompt": "", "guards": (), "opens": opens})
