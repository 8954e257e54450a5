"""What users rely on of teams that were put under a name: versions stay, and a goal keeps the team that it began with."""

from __future__ import annotations

import asyncio

import pytest

from ioa.errors import NotFoundError
from ioa.protocol.goal_order import GoalOrder
from ioa.protocol.ids import GoalId
from ioa.protocol.teams.team_file import TeamSpec, team_of
from ioa_testkit.planes import Plane


def debate(name: str = "debate", most: int = 2) -> TeamSpec:
    """A team of two that takes so many turns to talk."""
    talk = {"name": "talk", "roles": ["ann", "bob"], "max": most}
    return team_of({"team": name, "max_turns": 9, "roles": {"ann": "ada", "bob": "bob"}, "nodes": [talk]})


async def test_a_goal_keeps_the_version_that_it_began_with(plane: Plane) -> None:
    """Put once is put, however often; a goal that names a team holds it whole, and is the same goal after a newer version."""
    client = plane.client
    first = await client.put_team(debate())
    assert (await client.put_team(debate()), first.version) == (first, 1)
    order = GoalOrder(goal="Shall it rain?", goal_id=GoalId("one"), team="debate")
    launched = await client.launch(order)
    await asyncio.gather(*(client.put_team(debate(most=most)) for most in (3, 4, 5)))
    await client.put_team(debate("paper"))
    again = await client.launch(order)
    newest, second = await client.team("debate"), await client.team("debate@2")
    assert launched.record is not None and again.record == launched.record
    goal = launched.record.goal
    assert (goal.team, goal.team_name, goal.max_turns, goal.agent) == (debate(), "debate@1", 9, "ada")
    assert (newest.version, second.version, newest.team != second.team) == (4, 2, True)
    assert [(row.name, row.version) for row in await client.teams()] == [("debate", 4), ("paper", 1)]
    for wrong, why in (("debat", "did you mean `debate`"), ("debate@9", "it has 1 to 4"), ("none", "No team is called none")):
        with pytest.raises(NotFoundError, match=why):
            await client.team(wrong)
