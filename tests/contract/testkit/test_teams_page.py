"""The agents and teams of docs/teams.md work as described."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

from ioa import Agent, GoalOrder, TurnView
from ioa.ports.brain_types import TeamLaunch
from ioa.protocol.goal_order import order_of
from ioa.protocol.goals import Reason
from ioa.protocol.ids import AgentId
from ioa.protocol.teams.team_file import read_toml, team_of
from ioa.testing import ScriptedBrain
from ioa_testkit import System
from tests.packaging.readme_session import blocks_of
from tests.unit.tools.test_team_pages import page_blocks

_BLOCKS = blocks_of((Path(__file__).parents[3] / "docs" / "teams.md").read_text(encoding="utf-8"), also=("toml",))


def file(name: str) -> dict[str, Any]:
    """What a file of the page defines."""
    [body] = [block.body for block in _BLOCKS if re.match(rf"# {re.escape(name)}\n", block.body)]
    defined: dict[str, Any] = {}
    exec(compile(body, name, "exec"), defined)
    return defined


def team(name: str, goal: str) -> GoalOrder:
    """The order of a team of the page."""
    [found] = [one for block in _BLOCKS if block.kind == "toml" and (one := tomllib.loads(block.body)).get("team") == name]
    return GoalOrder(goal=goal, team=team_of(found))


async def test_panel_of_the_page_ends_with_the_vote(ioa_system: System) -> None:
    """The judge leads on to the vote, both vote, and the judge is asked for the result."""
    panel = file("panel.py")
    agents = [panel[name] for name in ("judge", "optimist", "pessimist")]
    finished = await ioa_system.run(team("panel", "Is it ready?"), agents=agents)
    assert (finished.result.reason, finished.content) == (Reason.CONCLUDED, "The panel says: it is ready.")
    assert finished.transcript.count("ready = True, risk = 2") == 2 and "vote: We have heard enough." in finished.transcript


async def test_reviewer_of_the_page_ends_the_loop(ioa_system: System) -> None:
    """It needs no task function; the writer, which leads, states the result, and words are one."""
    writer = Agent("writer", description="Writes drafts")

    @writer.speak
    def write(view: TurnView) -> Any:
        return view.say(f"A draft{' with a TODO' if not view.conversation else ''}.")

    finished = await ioa_system.run(team("loop", "Write it."), agents=[writer, file("reviewer.py")["agent"]])
    assert (finished.result.reason, finished.content) == (Reason.CONCLUDED, "A draft.")
    assert "on to draft: There is a TODO left." in finished.transcript


async def test_newsroom_of_the_page_prints_the_passed_draft(ioa_system: System) -> None:
    """The other members do not receive the rejected draft."""
    reporter, asked = Agent("reporter", description="Writes reports"), list[str]()

    @reporter.speak
    def report(view: TurnView) -> Any:
        asked.append(view.decisions[-1].why if view.decisions else "")
        return view.say("It is 90 metres long." if view.conversation else "It is long.")

    finished = await ioa_system.run(team("newsroom", "Report."), agents=[reporter, file("editor.py")["agent"]])
    assert (finished.result.reason, finished.content) == (Reason.CONCLUDED, "It is 90 metres long.")
    assert asked == ["", "How long is it?"]
    assert finished.transcript.count("reporter [draft] It is") == 2
    assert finished.transcript.count("reporter [discussion] It is 90 metres long.") == 1


async def test_the_song_of_the_page_is_written_in_versions(ioa_system: System) -> None:
    """Each member reads the last version when it speaks, and in the end the result holds both things."""
    song = file("song.py")
    finished = await ioa_system.run(team("song", "A song."), agents=[song["poet"], song["composer"]])
    expected = "verse, version 2: The bridge is long and new.\ntune, version 1: C, in three-four time"
    assert (finished.result.reason, finished.content) == (Reason.CONCLUDED, expected)
    assert "I like version 1 by poet." in finished.transcript
    assert "poet [writes] verse: The bridge is long and new." in finished.transcript


async def test_the_surveyor_of_the_page_has_a_welder_join(ioa_system: System) -> None:
    """During the discussion, without a turn."""
    survey = file("surveyor.py")
    plan = ScriptedBrain(teams=[TeamLaunch(members=())])
    finished = await ioa_system.run(
        GoalOrder(goal="Plan the bridge.", agent="surveyor"), agents=[survey["surveyor"], survey["welder"]], brain=plan
    )
    assert (finished.result.reason, finished.content) == (Reason.CONCLUDED, "In two days.")
    assert "[joined] surveyor invites welder: The bridge is of steel." in finished.transcript


async def test_the_free_group_of_the_page_counts_its_votes(ioa_system: System) -> None:
    """The leader asks the others, and concludes with their choices."""
    colours = file("colours.py")
    order = GoalOrder(goal="Which colour shall the door have?", agent="asking")
    plan = ScriptedBrain(teams=[TeamLaunch(members=(AgentId("ann"), AgentId("bob")))])
    finished = await ioa_system.run(order, agents=[colours[name] for name in ("asking", "ann", "bob")], brain=plan)
    assert (finished.result.reason, finished.content) == (Reason.CONCLUDED, "{'red': 2, 'blue': 0}")


async def test_teams_tutorial_ends_with_the_second_recipe(ioa_system: System) -> None:
    """The page's agents bake twice, and the second recipe is the result."""
    agents: list[Agent] = []
    for body in page_blocks("teams-tutorial.md", "python"):
        names: dict[str, Any] = {"__name__": "page"}
        exec(compile(body, "teams-tutorial.md", "exec"), names)
        agents.append(names["agent"])
    [text] = page_blocks("teams-tutorial.md", "toml")
    team = read_toml(text)
    done = await ioa_system.run(order_of(team.goal, team=team), agents=agents)
    assert (done.succeeded, done.result.content) == (True, "Flour, eggs and butter, and less sugar")
