"""A desk where a person decides: an agent asks, anna answers by a form, and states the conclusion."""

from __future__ import annotations

from collections.abc import Mapping

from ioa.group.requests import LaunchGroup
from ioa.protocol.cards import AgentCard
from ioa.protocol.goal_order import GoalOrder
from ioa.protocol.ids import CommId, PoolId
from ioa.protocol.messages import Discussion
from ioa.protocol.registry import Register
from ioa.protocol.teams.team_file import TeamSpec
from ioa_testkit.planes import Plane
from tests.contract.system_client.members import ADA, GOAL, Members
from tests.rig.deadline import eventually

TEAM: Mapping[str, object] = {
    "team": "desk",
    "leader": "boss",
    "roles": {"clerk": ADA, "boss": {"human": "anna", "prompt": "You decide what is offered."}},
    "nodes": [
        {"name": "ask", "roles": ["clerk"], "then": "answer"},
        {
            "name": "answer",
            "roles": ["boss"],
            "prompt": "Say what you think.",
            "max": 2,
            "form": {"agrees": "yes/no", "amount": "1..9?"},
            "exits": [{"to": "ask", "by": "speaker"}, {"to": "end"}],
        },
    ],
}
QUESTION = "Shall we offer three of them?"


async def open_desk(plane: Plane, members: Members, team: Mapping[str, object] = TEAM) -> CommId:
    """Launch the goal, and ask: it is anna's turn then."""
    card = AgentCard(agent_id=ADA, name=ADA, description="ada counts", pool=PoolId(ADA))
    await plane.network.register(Register(card=card))
    await eventually(lambda: plane.client.agents(online_only=True), bool)
    order = GoalOrder.model_validate({"goal": "Make an offer.", "goal_id": GOAL, "team": team})
    assert isinstance(order.team, TeamSpec)
    await plane.client.submit(order)
    ticket = await eventually(lambda: members._ticket_of(GOAL))
    request = LaunchGroup(owner=ADA, members=(), goal_id=GOAL, ticket=ticket, policy=order.team.policy.digest)
    room = (await plane.network.launch(request)).state.comm_id
    await members.say(ADA, Discussion(content=QUESTION), room)
    return room
