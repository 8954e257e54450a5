"""The scripted brain plays what it was given and says when there is nothing left."""

from __future__ import annotations

import pytest

from ioa.agent.brain_port import Brain
from ioa.errors import InvalidInputError
from ioa.ports.brain import TeamLaunch
from ioa.protocol.ids import AgentId
from ioa.testing.scripted_brain import ScriptedBrain
from tests.unit.agent.rules.test_teams import CSV, found, mission, task_view


async def test_answers_are_played_in_order() -> None:
    """Teams come in the order given, and the missions are kept."""
    brain = ScriptedBrain(teams=[TeamLaunch((AgentId("a"),)), TeamLaunch((AgentId("b"),))])
    port: Brain = brain
    played = [await port.form_team(mission(goal), found()) for goal in ("one", "two")]
    assert [TeamLaunch((AgentId("a"),)), TeamLaunch((AgentId("b"),))] == played
    assert [asked.text for asked in brain.missions] == ["one", "two"]


async def test_a_script_that_ran_out_says_so() -> None:
    """An answer that is not in the script is an error of the test's author."""
    with pytest.raises(InvalidInputError) as caught:
        await ScriptedBrain().form_team(mission("one"), found())
    assert "form_team" in str(caught.value)


async def test_tasks_are_done_alone_without_a_script() -> None:
    """Approaches need no script."""
    assert await ScriptedBrain().approach(task_view("count", CSV), found()) is None
