"""How an agent joins a group that is under way: a member that has the floor has invited it, and keeps the floor."""

from __future__ import annotations

from ioa.group.events import MemberJoined
from ioa.group.rejection import IllegalEventError, RejectionCode
from ioa.group.state import MAX_MEMBERS, GroupState, Member
from ioa.protocol.policy import Node, Policy


def join(state: GroupState, joined: MemberJoined) -> GroupState:
    """Take a new member into a group.

    Raises:
        IllegalEventError: Who invites it does not have the floor for that turn, it is in the group, or the group is full.
    """
    if joined.turn != state.turn:
        raise IllegalEventError(RejectionCode.STALE_TURN, f"Turn {joined.turn} is not the current one; that is {state.turn}.")
    if joined.by not in state.floor:
        raise IllegalEventError(RejectionCode.NOT_YOUR_FLOOR, f"{', '.join(state.floor)} holds the floor, not {joined.by}.")
    agent_id = joined.card.agent_id
    if state.is_member(agent_id):
        raise IllegalEventError(RejectionCode.NO_CHANGE, f"{agent_id} is in the group, or was removed from it.")
    if len(state.members) >= MAX_MEMBERS:
        raise IllegalEventError(RejectionCode.TOO_MANY_MEMBERS, f"A group has {MAX_MEMBERS} members at most.")
    member = Member(agent_id=agent_id, patience=joined.card.patience)
    ruled = (*state.ruled, agent_id) if joined.ruled else state.ruled
    return state.model_copy(update={"members": (*state.members, member), "ruled": ruled})


def able_roles(policy: Policy, node: Node) -> tuple[str, ...]:
    """Return the roles of a node in which an agent may join: those that no person holds."""
    return tuple([name for name in node.roles if not policy.roles[policy.role_numbers[name]].human])


def join_in_role(state: GroupState, joined: MemberJoined, policy: Policy) -> GroupState:
    """Take a new member into a group under a policy, in a role of the node that invites.

    Raises:
        IllegalEventError: As in `join`; or the node does not invite, or has no such role.
    """
    course = state.course
    assert course is not None
    node = policy.nodes[course.node]
    if not node.invites or course.opening:
        raise IllegalEventError(RejectionCode.OFF_COURSE, "The policy does not let anybody be invited now.")
    able = able_roles(policy, node)
    if joined.role not in able:
        raise IllegalEventError(RejectionCode.OFF_COURSE, f"Say which role a new member is to play: one of {', '.join(able)}.")
    after = join(state, joined)
    member = after.members[-1].model_copy(update={"roles": (policy.role_numbers[joined.role],)})
    grown = {"taken": (*course.taken, 0), "total": (*course.total, 0) if policy.counts_totals else ()}
    return after.model_copy(update={"members": (*state.members, member), "course": course.model_copy(update=grown)})
