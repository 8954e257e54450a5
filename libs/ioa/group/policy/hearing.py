"""Hearing: the members that hear a message in a node, and the members that must not read parallel messages yet."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ioa.group.state import Course, Gathering, GroupState, Member
from ioa.protocol.ids import AgentId
from ioa.protocol.messages import AsyncTaskAssignment, Message, SyncTaskAssignment
from ioa.protocol.policy import Policy


def hides(policy: Policy | None) -> bool:
    """Return True if a policy hides something from members for good."""
    return policy is not None and policy.hides


def hears_all(policy: Policy, member: Member) -> bool:
    """Return True if a member hears every message."""
    return not member.removed and not policy.hearing_all.isdisjoint(member.roles)


def hears(policy: Policy, course: Course, member: Member, speaker: Member) -> bool:
    """Return True if a member hears the message of another member in the present node."""
    if member.removed or member.agent_id == speaker.agent_id:
        return not member.removed
    roles = policy.hearers(course.node, speaker.roles)
    return roles is None or not roles.isdisjoint(member.roles) or hears_all(policy, member)


def hearing(policy: Policy, state: GroupState, speaker: Member, among: Iterable[Member]) -> Sequence[Member]:
    """Return those of some members who hear what one says in the present stage; who is removed hears nothing.

    What several say side by side the others in the node perhaps never hear.
    """
    course, stage = state.course, state.stage
    assert course is not None
    roles, hearing_all = policy.hearers(course.node, speaker.roles), policy.hearing_all
    found = [
        one
        for one in among
        if not one.removed
        and (
            roles is None
            or one.agent_id == speaker.agent_id
            or not roles.isdisjoint(one.roles)
            or not hearing_all.isdisjoint(one.roles)
        )
    ]
    if not isinstance(stage, Gathering) or policy.nodes[course.node].turns.peers != "never":
        return found
    also = (speaker.agent_id, None if stage.votes is None else stage.votes.by)
    apart = frozenset(policy.speaking[course.node])
    return [one for one in found if one.agent_id in also or apart.isdisjoint(one.roles) or not hearing_all.isdisjoint(one.roles)]


def told_of_tasks(policy: Policy, state: GroupState, message: Message) -> tuple[AgentId, ...]:
    """Return who is told of an assignment, and of what comes of its tasks: who hears its sender, and who does one of them."""
    payload = message.payload
    assert isinstance(payload, SyncTaskAssignment | AsyncTaskAssignment)
    if not policy.hides:
        return state.hearing
    heard = hearing(policy, state, state.members[state.number_of(message.header.sender)], state.members)
    told = {*(one.agent_id for one in heard), *(task.assignee for task in payload.tasks)}
    return tuple([one for one in state.hearing if one in told])


def sitting_apart(policy: Policy, state: GroupState) -> frozenset[AgentId]:
    """Return who is to speak beside others yet, and does not read before what they have said."""
    stage, course = state.stage, state.course
    if not isinstance(stage, Gathering) or course is None or policy.nodes[course.node].turns.peers != "after":
        return frozenset()
    return frozenset([seat.agent_id for seat in stage.seats]).union(stage.away)


def addressees(policy: Policy, state: GroupState, agent_id: AgentId) -> tuple[AgentId, ...]:
    """Return the members to which a speaker may narrow a message: members of which it knows that they hear it."""
    if not policy.hides:
        return ()
    me = state.members[state.number_of(agent_id)]
    others = [as_known(policy, one, me) for one in state.members if one is not me]
    return tuple([one.agent_id for one in hearing(policy, state, me, others)])


def as_known(policy: Policy, member: Member, to: Member) -> Member:
    """Return a member with the roles that another member knows: of the secret roles only the roles that it holds itself."""
    if member.agent_id == to.agent_id or policy.secrets.isdisjoint(member.roles) or hears_all(policy, to):
        return member
    roles = tuple([role for role in member.roles if role not in policy.secrets or role in to.roles])
    return member.model_copy(update={"roles": roles})
