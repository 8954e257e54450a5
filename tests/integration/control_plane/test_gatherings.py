"""Judges, forms and votes on a whole system: who is asked decides, and who speaks beside others reads them afterwards."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest

from ioa import Agent, TurnView
from ioa.agent.rules import RuleBrain
from ioa.agent.turn_view import Said as Spoken
from ioa.ports.brain import Mission, TeamLaunch, TeamTools
from ioa.protocol.goal_order import GoalOrder
from ioa.protocol.ids import AgentId
from ioa.protocol.messages import Discussion
from ioa.testing import ScriptedBrain
from ioa_testkit.finished import FinishedGoal
from ioa_testkit.system import System
from tests.rig.log_checker import Evidence, check_logs

Speaks = Callable[[TurnView], Spoken]


class Everybody(RuleBrain):
    """Rules that take everybody into the team."""

    async def form_team(self, mission: Mission, tools: TeamTools) -> TeamLaunch:
        """Ask nobody."""
        return TeamLaunch(members=tuple(AgentId(name) for name in ("bob", "eve", "joe")))


def agents(**speakers: Speaks) -> list[Agent]:
    """Agents that say what these functions return."""
    return [agent(name, speaks) for name, speaks in speakers.items()]


def agent(name: str, speaks: Speaks) -> Agent:
    """An agent that says what a function returns, and concludes by its name."""
    this = Agent(name, description=f"Plays {name}.")

    @this.task
    def run(task: str) -> str:
        return task

    @this.speak
    def speak(view: TurnView) -> Spoken:
        return view.conclude(f"{name} concludes.") if view.legal[:1] == ("CONCLUSION",) else speaks(view)

    return this


def judged(finished: FinishedGoal) -> list[str]:
    """What the checker finds wrong with the group's log."""
    evidence = Evidence(goals=[], results=[], logs={finished.result.comm_id: finished.log})
    return list(check_logs(evidence))


@pytest.fixture(autouse=True)
def patience(ioa_system: System) -> None:
    """Let a goal take its time, on a machine that does much else."""
    ioa_system.within = timedelta(minutes=1)


async def test_a_free_group_votes(ioa_system: System) -> None:
    """Whoever asks gets the floor back with what came of it; an agent without an answer passes."""
    told: list[str] = []

    def ask(view: TurnView) -> Spoken:
        if view.votes is None:
            return view.say("Which?", to=["bob", "eve", "joe"], question={"choice": "red|blue", "sure": "1..10"})
        [choice, sure] = view.votes.fields
        told.append(f"{dict(choice.counts)} {sure.lowest}-{sure.highest} silent {view.votes.silent}")
        return view.conclude("Red.")

    def vote(view: TurnView) -> Discussion:
        assert view.offer is not None and [blank.name for blank in view.offer.form] == ["choice", "sure"]
        assert [one.sender for one in view.conversation] == ["ada"]
        return view.say(f"{view.me} is for red.", fields={"choice": "red", "sure": len(view.me) + (view.me == "eve")})

    joe = Agent("joe", description="Which colour, red or blue?", examples=["which colour"])

    @joe.task
    def run(task: str) -> str:
        return task

    all_of_them = [*agents(ada=ask, bob=vote, eve=vote), joe]
    finished = await ioa_system.run(GoalOrder(goal="Which colour?", agent="ada"), agents=all_of_them, brain=Everybody())
    assert (finished.result.content, told) == ("Red.", ["{'red': 2, 'blue': 0} 3-4 silent ('joe',)"])


async def test_agent_invited_during_a_discussion_reads_it_and_speaks(ioa_system: System) -> None:
    """The leader invites the agent by a need."""

    def lead(view: TurnView) -> Spoken:
        if not view.conversation:
            return view.say("It is of steel.", to="bob")
        if len(view.conversation) == 2 and "smith" not in [mate.agent_id for mate in view.team]:
            return view.invite(need="weld steel", why="Bob does not know.")
        return view.say("Smith?", to="smith") if len(view.conversation) == 2 else view.conclude(view.conversation[-1].content)

    def answer(view: TurnView) -> Discussion:
        return view.say(f"{view.me} has heard {len(view.conversation)}.", to="ada")

    smith = Agent("smith", description="weld steel", examples=["weld steel"])
    smith.speak(answer)
    plan = ScriptedBrain(teams=[TeamLaunch(members=(AgentId("bob"),))])
    everybody = [*agents(ada=lead, bob=answer), smith]
    finished = await ioa_system.run(GoalOrder(goal="Build it.", agent="ada"), agents=everybody, brain=plan)
    assert finished.result.content == "smith has heard 3."
    assert "ada invites smith: Bob does not know." in finished.transcript
    assert judged(finished) == []
