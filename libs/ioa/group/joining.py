"""How an agent joins a group that is under way: a member that has the floor has invited it, and keeps the floor.

Under a policy a watcher may do so too that is asked whether to step in; that is its answer.
"""

from __future__ import annotations

from ioa.group.events import MemberJoined
from ioa.group.rejection import IllegalEventError, RejectionCode
from ioa.group.state import MAX_MEMBERS, Asking, GroupState, Member
from ioa.protocol.ids import AgentId
from ioa.protocol.policy import Name, Policy

ADD = "add"
"""What a watcher may choose that has somebody join."""


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


def invited_as(policy: Policy, state: GroupState) -> tuple[Name, ...]:
    """Return the roles in which who has the floor may have others join, or the watcher that is asked; empty if nobody may now."""
    course, stage = state.course, state.stage
    assert course is not None
    if isinstance(stage, Asking):
        return policy.able(policy.role_numbers) if stage.about == "watch" and ADD in stage.options else ()
    node = policy.nodes[course.node]
    return policy.able(node.roles) if node.invites and not course.opening else ()


def invited_by(policy: Policy, state: GroupState, agent_id: AgentId) -> tuple[Name, ...]:
    """Return in which of these roles a member may have others join: in none that hears more than it does itself."""
    if not (able := invited_as(policy, state)):
        return ()
    more = policy.hearing_more(state.members[state.number_of(agent_id)].roles)
    return tuple([role for role in able if policy.role_numbers[role] not in more])


def join_in_role(state: GroupState, joined: MemberJoined, policy: Policy) -> GroupState:
    """Take a new member into a group under a policy, in a role that it may join in.

    Raises:
        IllegalEventError: As in `join`; or nobody may be invited now, or not in that role.
    """
    course = state.course
    assert course is not None
    able = invited_as(policy, state)
    if not able:
        raise IllegalEventError(RejectionCode.OFF_COURSE, "The policy does not let anybody be invited now.")
    if joined.role not in able:
        raise IllegalEventError(RejectionCode.OFF_COURSE, f"Say which role a new member is to play: one of {', '.join(able)}.")
    after = join(state, joined)
    if joined.role not in (hearing_no_more := invited_by(policy, state, joined.by)):
        other = f"; it may be: {', '.join(hearing_no_more)}" if hearing_no_more else ""
        why = f"{joined.role} hears what {joined.by} does not, who has nobody join as that{other}."
        raise IllegalEventError(RejectionCode.OFF_COURSE, why)
    member = after.members[-1].model_copy(update={"roles": (policy.role_numbers[joined.role],)})
    grown = {"taken": (*course.taken, 0), "total": (*course.total, 0) if policy.counts_totals else ()}
    return after.model_copy(update={"members": (*state.members, member), "course": course.model_copy(update=grown)})
