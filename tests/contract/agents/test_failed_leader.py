"""A leader whose function fails, on the real services."""

from __future__ import annotations

import pytest

from ioa import Agent, TurnView
from ioa.agent.turn_view import Said
from ioa.protocol.goal_order import GoalOrder
from ioa.protocol.goals import Reason
from ioa.protocol.teams.team_file import team_of
from ioa_testkit import System

TEAM = {
    "team": "review",
    "leader": "boss",
    "roles": {name: {"agents": [agent], "prompt": name} for name, agent in [("boss", "lead"), ("critic", "critic")]},
    "nodes": [{"name": "check", "roles": ["critic"], "then": "result"}, {"name": "result", "roles": ["boss"]}],
}


@pytest.mark.parametrize("order", [GoalOrder(goal="write it", team=team_of(TEAM)), GoalOrder(goal="write it", agent="lead")])
async def test_goal_fails_with_the_error_of_its_leader(ioa_system: System, order: GoalOrder) -> None:
    """The objection of the reviewer is not the result."""
    lead = Agent("lead", description="Leads.", examples=["lead it"])
    critic = Agent("critic", description="Writes and reviews.", examples=["write it"])

    @lead.speak
    def conclude(view: TurnView) -> Said:
        return view.conclude(dict[str, str]()["x"])

    @critic.task
    def object_to(task: str) -> str:
        return "It is too long."

    done = await ioa_system.run(order, agents=[lead, critic])
    assert (done.result.reason, "KeyError: 'x'" in done.result.content) == (Reason.FAILED, True)
