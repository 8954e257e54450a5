"""How a group's log begins: with the launch of the group, or with the end of a goal for which none is opened."""

from __future__ import annotations

from ioa.group import floor
from ioa.group.events import GroupLaunched, LaunchAbandoned
from ioa.group.policy.course import begin
from ioa.group.rejection import IllegalEventError, RejectionCode
from ioa.group.state import Charter, Discussing, Ended, GroupState, Limits, Member
from ioa.protocol.decisions import Decisions
from ioa.protocol.ids import AgentId


def launch(launched: GroupLaunched) -> GroupState:
    """Open the group and give its owner the floor, or under a policy whom that says.

    Raises:
        IllegalEventError: The owner is not in its own team.
    """
    charter = launched.charter
    plays = {
        card.agent_id: tuple([number for number, casting in enumerate(charter.cast) if card.agent_id in casting.members])
        for card in charter.team_members
    }
    state = GroupState(
        comm_id=charter.comm_id,
        goal_id=charter.goal_id,
        user=charter.user,
        owner=charter.owner,
        members=tuple(
            Member(
                agent_id=card.agent_id,
                patience=card.patience,
                roles=plays[card.agent_id],
                human=charter.policy is not None and any(charter.policy.roles[role].human for role in plays[card.agent_id]),
            )
            for card in charter.team_members
        ),
        limits=charter.limits,
        depth=charter.team_up_depth,
        parent=charter.parent,
        stage=Discussing(holder=charter.owner, until=launched.at + charter.limits.floor_timeout, since=launched.at),
        turn=1,
        spent=launched.usage,
        decisions=(Decisions(by=launched.decided_by, count=1),) if launched.decided_by is not None else (),
        ruled=_ruled(charter) if charter.policy is None else (),
    )
    if not state.is_member(charter.owner):
        raise IllegalEventError(RejectionCode.NOT_A_MEMBER, f"The owner {charter.owner} is not in its own team.")
    if charter.policy is not None:
        return begin(state.model_copy(update={"turn": 0}), charter.policy, launched.at)
    until = floor.until(state, charter.owner, launched.at)
    return state.model_copy(update={"stage": Discussing(holder=charter.owner, until=until, since=launched.at)})


def _ruled(charter: Charter) -> tuple[AgentId, ...]:
    """Return the members that rules speak for, if a model speaks for the owner."""
    speaks = {card.agent_id: card.speaks for card in charter.team_members}
    return tuple(agent_id for agent_id, by in speaks.items() if by == "rules") if speaks.get(charter.owner) == "model" else ()


def abandon(abandoned: LaunchAbandoned) -> GroupState:
    """End what never began."""
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
        decisions=(Decisions(by=abandoned.decided_by, count=1),) if abandoned.decided_by is not None else (),
    )
