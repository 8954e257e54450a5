"""Who hears whom in a node, and who sits apart in it for now."""

from __future__ import annotations

from ioa.group.state import Course, Gathering, GroupState, Member
from ioa.protocol.ids import AgentId
from ioa.protocol.levels import VISIBILITY
from ioa.protocol.policy import Policy


def is_scoped(policy: Policy | None, state: GroupState) -> bool:
    """Whether not all members hear all at once in a group."""
    return policy is not None and policy.is_scoped and state.limits.level >= VISIBILITY


def hides(policy: Policy | None, state: GroupState) -> bool:
    """Whether something is kept from members of a group for good."""
    return policy is not None and policy.hides and state.limits.level >= VISIBILITY


def hears_all(policy: Policy, member: Member) -> bool:
    """Whether a member hears all that is said."""
    return not member.removed and not policy.hearing_all.isdisjoint(member.roles)


def hears(policy: Policy, course: Course, member: Member, speaker: Member) -> bool:
    """Whether a member hears what another one says where the group is."""
    if member.removed or member.agent_id == speaker.agent_id:
        return not member.removed
    roles = policy.hearers(course.node, speaker.roles)
    return roles is None or not roles.isdisjoint(member.roles) or hears_all(policy, member)


def heard_beside(policy: Policy, state: GroupState, member: Member, speaker: Member) -> bool:
    """Whether a member hears what another one says in the present stage: of others in the node perhaps never what is gathered."""
    course, stage = state.course, state.stage
    assert course is not None
    if not hears(policy, course, member, speaker):
        return False
    node = policy.nodes[course.node]
    if not isinstance(stage, Gathering) or node.turns.peers != "never" or member.agent_id == speaker.agent_id:
        return True
    asked_by = None if stage.votes is None else stage.votes.by
    plays = any(policy.role_numbers[name] in member.roles for name in node.roles)
    return not plays or member.agent_id == asked_by or hears_all(policy, member)


def sitting_apart(policy: Policy, state: GroupState) -> frozenset[AgentId]:
    """Return who is to speak beside others yet, and does not read before what they have said."""
    stage, course = state.stage, state.course
    if not isinstance(stage, Gathering) or course is None or policy.nodes[course.node].turns.peers != "after":
        return frozenset()
    return frozenset([seat.agent_id for seat in stage.seats]).union(stage.away)


def known_roles(policy: Policy, member: Member, to: Member) -> tuple[int, ...]:
    """Return the roles of a member that another one knows: of secret ones those that it holds itself."""
    if member.agent_id == to.agent_id or not policy.secrets or hears_all(policy, to):
        return member.roles
    return tuple([role for role in member.roles if role not in policy.secrets or role in to.roles])


def addressees(policy: Policy, state: GroupState, agent_id: AgentId) -> tuple[AgentId, ...]:
    """Return to whom a speaker may narrow what it says: those of whom it knows that they would hear it."""
    if not hides(policy, state):
        return ()
    me = state.members[state.number_of(agent_id)]
    known = [one.model_copy(update={"roles": known_roles(policy, one, me)}) for one in state.members if one.agent_id != agent_id]
    return tuple([one.agent_id for one in known if heard_beside(policy, state, one, me)])
