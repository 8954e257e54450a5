"""The members of a group: the launch with its first members, the end of a goal without a group, and invitations of agents."""

from __future__ import annotations

from ioa.group import floor
from ioa.group.events import GroupLaunched, LaunchAbandoned, MemberJoined
from ioa.group.policy import course
from ioa.group.rejection import IllegalEventError, RejectionCode
from ioa.group.state import Asking, Charter, Discussing, Ended, GroupState, Limits, Member
from ioa.protocol.decisions import DecidedBy, Decisions
from ioa.protocol.ids import AgentId
from ioa.protocol.policy import Name, Policy

ADD = "add"
"""The option of a watcher that invites an agent."""


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
        ruled=_ruled(charter) if policy is None else (),
    )
    if not state.is_member(charter.owner):
        raise IllegalEventError(RejectionCode.NOT_A_MEMBER, f"The owner {charter.owner} is not in its own team.")
    if policy is not None:
        return course.begin(state, policy, launched.at)
    return state.model_copy(update=floor.granted(state, charter.owner, launched.at))


def _ruled(charter: Charter) -> tuple[AgentId, ...]:
    """Return the members that rules speak for, if a model speaks for the owner."""
    speaks = {card.agent_id: card.speaks for card in charter.team_members}
    return tuple(agent_id for agent_id, by in speaks.items() if by == "rules") if speaks.get(charter.owner) == "model" else ()


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


def invitable_roles(policy: Policy, state: GroupState, agent_id: AgentId) -> tuple[Name, ...]:
    """Return the roles in which a member with the floor, or a watcher, may invite agents: none that hears more than itself."""
    stage, where = state.stage, state.course
    assert where is not None
    node = policy.nodes[where.node]
    if isinstance(stage, Asking):
        able = policy.able(policy.role_numbers) if stage.about == "watch" and ADD in stage.options else ()
    else:
        able = policy.able(node.roles) if node.invites and not where.opening else ()
    more = policy.hearing_more(state.members[state.number_of(agent_id)].roles) if able else ()
    return tuple([role for role in able if policy.role_numbers[role] not in more])


def check_invitation(state: GroupState, joined: MemberJoined, policy: Policy | None) -> None:
    """Reject an invitation of a member, or in a role that is not offered.

    Raises:
        IllegalEventError: The error names the fault.
    """
    if state.is_member(joined.card.agent_id):
        why = f"{joined.card.agent_id} is in the group, or was removed from it."
        raise IllegalEventError(RejectionCode.NO_CHANGE, why)
    if policy is not None and joined.role not in (able := invitable_roles(policy, state, joined.by)):
        why = f"Name the role of the new member: one of {', '.join(able)}." if able else "No member may be invited now."
        raise IllegalEventError(RejectionCode.OFF_COURSE, why)


def join(state: GroupState, joined: MemberJoined, policy: Policy | None) -> GroupState:
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
    return state.model_copy(update=changed)
