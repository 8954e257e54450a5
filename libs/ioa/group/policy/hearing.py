"""Hearing: the members that receive an event, and the members that must not read parallel messages yet."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from ioa.group.events import (
    Event,
    MemberJoined,
    MessageRefused,
    QuestionAnswered,
    RepetitionRefused,
    Said,
    SubgroupClosed,
    SubgroupOpened,
)
from ioa.group.policy.position import Course
from ioa.group.state import Asking, Concluding, Discussing, Gathering, GroupState, Member, Task, Waiting
from ioa.protocol.ids import AgentId
from ioa.protocol.messages import (
    ASSIGNMENTS,
    TASK_REPORTS,
    ConcludeGroupDiscussion,
    Conclusion,
    Decision,
    Discussion,
    Message,
    Pass,
    TaskQuestion,
    Thinking,
)
from ioa.protocol.policy import Policy
from ioa.protocol.policy_parts import Node


def is_reviewed(policy: Policy, node: Node, member: Member) -> bool:
    """Return whether messages of a member in a node are reviewed; messages of reviewers are not."""
    return node.review is not None and policy.role_numbers[node.review.by] not in member.roles


def is_draft(policy: Policy, state: GroupState, member: Member) -> bool:
    """Return whether the next message of a floor holder is a draft; opening words and passed drafts are not."""
    course = state.course
    if not policy.reviews or course is None or course.opening or not isinstance(state.stage, Discussing):
        return False
    is_passed = course.draft is not None and course.draft.passed
    return not is_passed and is_reviewed(policy, policy.nodes[course.node], member)


def hides(policy: Policy | None) -> bool:
    """Return True if a policy hides something from members for good."""
    return policy is not None and policy.hides


def hears_all(policy: Policy, member: Member) -> bool:
    """Return True if a member hears every message."""
    return not member.removed and not policy.hearing_all.isdisjoint(member.roles)


_ENDS = (ConcludeGroupDiscussion, Conclusion)
_TALK = (Discussion, Pass, Thinking)


def audience(policy: Policy | None, state: GroupState, event: Event) -> tuple[AgentId, ...]:
    """Return the members that receive an event in a state, in the order of joining; a member that it removes receives it last.

    All receive the launch, timers, members that join, are lost or return, and the conclusion. Members that hear all receive a
    decision and its rejection; members that heard a question receive its answer; members that know a task receive its reports.
    """
    if isinstance(event, MemberJoined):
        return (*state.hearing, event.card.agent_id)
    course = state.course
    if policy is None or not policy.hides or course is None:
        return state.hearing
    if state.tasks and (task := _task_of(state, event)) is not None:
        return tuple([one for one in state.hearing if state.knows_task(one, task)])
    match event:
        case Said(message=message) if not (isinstance(state.stage, Concluding) or isinstance(message.payload, _ENDS)):
            told = _hearers_of_message(policy, state, course, message)
        case MessageRefused(by=by) | RepetitionRefused(by=by):
            told = frozenset([by])
        case QuestionAnswered() if isinstance(state.stage, Waiting) and state.question is not None:
            told = _hearing(policy, state, state.stage.waiter)
        case _:
            return state.hearing
    return policy.of_members(("told", told), state.members, _in_order)


def _in_order(policy: Policy, members: Sequence[Member], key: tuple[str, frozenset[AgentId]]) -> tuple[AgentId, ...]:
    """Return the members that receive an event that some members hear, in the order of joining."""
    return tuple([one.agent_id for one in members if not one.removed and (one.agent_id in key[1] or hears_all(policy, one))])


def told_of_tasks(policy: Policy, state: GroupState, message: Message) -> tuple[AgentId, ...]:
    """Return the members that know the tasks of an assignment: the members that hear its sender, and the assignees."""
    payload = message.payload
    assert isinstance(payload, ASSIGNMENTS)
    told = _hearing(policy, state, message.header.sender) | {task.assignee for task in payload.tasks}
    return tuple([one for one in state.hearing if one in told])


_Place = tuple[int, AgentId | None, bool]
"""A node, the hub that asked its speakers, and whether parallel messages in it are perhaps never heard by other speakers."""


def _find_place(policy: Policy, state: GroupState) -> _Place:
    course, stage = state.course, state.stage
    assert course is not None
    if not isinstance(stage, Gathering) or policy.nodes[course.node].turns.peers != "never":
        return course.node, None, False
    return course.node, None if stage.votes is None else stage.votes.by, True


def hearing(policy: Policy, place: _Place, speaker: Member, among: Iterable[Member]) -> tuple[AgentId, ...]:
    """Select the members that hear the message of a speaker."""
    node, hub, is_secluded = place
    roles, secluded = policy.hearers(node, speaker.roles), frozenset(policy.speaking[node] if is_secluded else ())

    def hears(one: Member) -> bool:
        if one.agent_id == speaker.agent_id or hears_all(policy, one):
            return True
        is_reached = roles is None or not roles.isdisjoint(one.roles)
        return is_reached and (one.agent_id == hub or secluded.isdisjoint(one.roles))

    return tuple([one.agent_id for one in among if not one.removed and hears(one)])


def sitting_apart(policy: Policy, state: GroupState) -> frozenset[AgentId]:
    """Return the members that must still speak in parallel and do not read the others' messages before."""
    stage, course = state.stage, state.course
    if not isinstance(stage, Gathering) or course is None or policy.nodes[course.node].turns.peers != "after":
        return frozenset()
    return frozenset([seat.agent_id for seat in stage.seats]).union(stage.away)


def is_withheld(policy: Policy, state: GroupState, event: Event, agent_id: AgentId) -> bool:
    """Return True for a message of another member in a parallel turn in which the member has yet to speak."""
    stage = state.stage
    if not (isinstance(stage, Gathering) and isinstance(event, Said)):
        return False
    header, payload = event.message.header, event.message.payload
    if header.sender == agent_id or header.turn < (stage.begun or state.turn) or not isinstance(payload, _TALK):
        return False
    return agent_id in sitting_apart(policy, state)


def addressees(policy: Policy, state: GroupState, agent_id: AgentId) -> tuple[AgentId, ...]:
    """Return the members to which a speaker may narrow a message: members of which it knows that they hear it."""
    if not policy.hides:
        return ()
    me = state.members[state.number_of(agent_id)]
    others = as_known(policy, state.members, me)
    return tuple([one for one in hearing(policy, _find_place(policy, state), me, others) if one != agent_id])


def as_known(policy: Policy, members: tuple[Member, ...], to: Member) -> tuple[Member, ...]:
    """Return members with the roles that a member knows: of the secret roles only the roles that it holds itself."""
    hidden = policy.secrets.difference(to.roles)
    if not hidden or hears_all(policy, to):
        return members
    return policy.of_members(hidden, members, _without_roles)


def _without_roles(_policy: Policy, members: Sequence[Member], hidden: Collection[int]) -> tuple[Member, ...]:
    return tuple([one.model_copy(update={"roles": tuple([role for role in one.roles if role not in hidden])}) for one in members])


def _hearers_of_message(policy: Policy, state: GroupState, course: Course, message: Message) -> frozenset[AgentId]:
    """Return the members that hear a message; members that hear all are added later."""
    sender, payload, stage = message.header.sender, message.payload, state.stage
    if isinstance(stage, Asking) and stage.about != "review":
        hinted = payload.members if isinstance(payload, Decision) and payload.choice == "hint" else ()
        return frozenset([sender, *hinted])
    if policy.reviews and (isinstance(stage, Asking) or is_draft(policy, state, state.members[state.number_of(sender)])):
        review = policy.nodes[course.node].review
        assert review is not None
        role = policy.role_numbers[review.by]
        author = sender if course.draft is None or not isinstance(stage, Asking) else state.members[course.draft.by].agent_id
        return frozenset([author, *(one.agent_id for one in state.members if role in one.roles)])
    if isinstance(payload, ASSIGNMENTS):
        return frozenset(told_of_tasks(policy, state, message))
    told = _hearing(policy, state, sender)
    return told & {sender, *payload.to} if isinstance(payload, Discussion) and payload.to else told


def _hearing(policy: Policy, state: GroupState, agent_id: AgentId) -> frozenset[AgentId]:
    return policy.of_members((_find_place(policy, state), agent_id), state.members, _hearing_one)


def _hearing_one(policy: Policy, members: Sequence[Member], key: tuple[_Place, AgentId]) -> frozenset[AgentId]:
    place, agent_id = key
    speaker = next(one for one in members if one.agent_id == agent_id)
    return frozenset(hearing(policy, place, speaker, members))


def _task_of(state: GroupState, event: Event) -> Task | None:
    """Return the task that an event is about."""
    match event:
        case Said(message=message) if isinstance(message.payload, (*TASK_REPORTS, TaskQuestion, Decision)):
            task_id = message.payload.task_id
        case SubgroupOpened() | SubgroupClosed() | QuestionAnswered():
            task_id = event.task_id
        case _:
            return None
    return None if task_id is None else state.task(task_id)
