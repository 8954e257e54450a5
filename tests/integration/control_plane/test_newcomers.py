"""Who joins a group under a policy in which not all hear all, and whom a watcher adds: what it is shown, and who speaks next."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ioa import Agent, TurnView
from ioa.agent.hooks import Said as Spoken
from ioa.protocol.goal_order import GoalOrder
from ioa.protocol.team import team_of
from ioa.testing import ScriptedModel
from ioa.testing.scripted_model import ScriptedCall
from ioa_testkit import System

TEAM: dict[str, Any] = {
    "team": "panel",
    "leader": "host",
    "roles": {
        "host": {"agent": "host", "hears_all": True},
        "panelist": {"agents": ["ann", "bob"]},
        "guard": {"agent": "watch", "hears_all": True},
    },
    "nodes": [
        {"name": "open", "roles": ["host"], "then": "apart"},
        {"name": "apart", "roles": ["panelist"], "heard_by": "host", "max": 2, "then": "panel"},
        {"name": "panel", "roles": ["panelist"], "turns": "together", "then": "end"},
    ],
    "watchers": [{"role": "guard", "node": "apart", "by": "panelist", "may": ["add", "end"]}],
}
ORDER = GoalOrder(goal="Judge the bridge.", team=team_of(TEAM))


class Stage:
    """Agents that speak as their node has it, and what each has read."""

    def __init__(self) -> None:
        self.read: dict[str, list[str]] = {}
        self.refused: list[str] = []

    def speaks(self, view: TurnView) -> Spoken:
        """Note what is in sight, and say something that tells who says it where."""
        assert view.part is not None
        if "CONCLUSION" in view.legal:
            return view.conclude("It stands.")
        self.read[f"{view.me} in {view.part.node}"] = [one.content for one in view.conversation if one.kind == "message"]
        return view.say(f"<{view.me} in {view.part.node}>")

    def watches(self, view: TurnView) -> Spoken:
        """Add the welder once, by a need of which nobody is first."""
        assert view.offer is not None
        self.refused += view.refusals
        if "welder" in [mate.agent_id for mate in view.team]:
            return view.decide("nothing")
        assert (view.offer.options, view.offer.invites) == (("nothing", "add", "end"), ("host", "panelist", "guard"))
        if not view.refusals:
            return view.decide("add")
        return view.invite(need="weld steel", role="panelist", why="Nobody here welds.")

    def agents(self, watch: Agent) -> list[Agent]:
        """All that play."""
        made = [watch]
        for name, does in (("host", "hosts"), ("ann", "judges"), ("bob", "judges"), ("welder", "weld steel")):
            agent = Agent(name, description=does, examples=[does])
            agent.speak(self.speaks)
            made.append(agent)
        return made


async def test_whom_a_watcher_adds_reads_what_all_heard_and_speaks(ioa_system: System) -> None:
    """It is asked again when it has only chosen to; what was said apart the newcomer never reads, and it has its seat."""
    stage, watch = Stage(), Agent("watch", description="watches", examples=["watches"])
    watch.speak(stage.watches)
    finished = await ioa_system.run(ORDER, agents=stage.agents(watch))
    assert finished.result.content == "It stands."
    assert "watch invites welder as panelist: Nobody here welds." in finished.transcript
    assert stage.refused == ["To add somebody, have it join: who does is your answer."]
    assert stage.read["bob in apart"] == ["<host in open>"]
    assert stage.read["welder in panel"] == ["<host in open>"]
    seats = sorted(name.split()[0] for name in stage.read if name.endswith("in panel"))
    assert seats == ["ann", "bob", "welder"]


async def test_a_model_that_watches_adds_whom_it_needs(ioa_system: System) -> None:
    """It is told how, in which roles, and what is wrong with how it did."""
    stage, prompts = Stage(), list[str]()

    def answer(asked: ScriptedCall) -> str:
        prompts.append(asked.prompt)
        if "welder" in asked.prompt:
            return json.dumps({"decision": {"type": "DECIDE", "choice": "nothing"}})
        role = "judge" if len(prompts) == 1 else "panelist"
        return json.dumps({"decision": {"type": "DECIDE", "choice": "add", "need": "weld steel", "role": role}})

    watch = Agent("watch", description="watches", examples=["watches"])

    @watch.task
    def run(task: str) -> str:
        return task

    finished = await ioa_system.run(ORDER, agents=stage.agents(watch), model=ScriptedModel(answer))
    assert "watch invites welder as panelist: weld steel" in finished.transcript
    assert "`add` has somebody join for a `need`, in a sentence, as `role`: host, panelist, guard" in prompts[0]
    assert "`judge` is no role that somebody can join in" in prompts[1]


ESSAY: dict[str, Any] = {
    "team": "essay",
    "leader": "host",
    "roles": {"host": "host", "clerk": "ann"},
    "nodes": [
        {"name": "meet", "roles": ["host", "clerk"], "invites": True, "max": 1, "then": "write"},
        {
            "name": "write",
            "roles": ["clerk"],
            "form": {f"part{number}": "text?" for number in range(16)},
            "max": 1,
            "exits": [*({"to": "meet", "when": {"field": f"part{number}"}} for number in range(16)), {"to": "end"}],
        },
    ],
}


@pytest.mark.parametrize(
    ("asked", "why"),
    [
        ({"agent": "bob"}, "With another clerk the state might grow beyond 16,000 bytes."),
        ({"need": "write in verse"}, "Nobody else was found for: write in verse."),
    ],
    ids=["no room", "nobody found"],
)
async def test_who_cannot_have_somebody_join_is_told_why_and_speaks(ioa_system: System, asked: dict[str, str], why: str) -> None:
    """What each clerk fills in stands in each entry, and two could fill in more than the checker lets a file have."""
    refused = list[str]()
    names = ("host", "ann", "bob") if "agent" in asked else ("host", "ann")

    def speak(view: TurnView) -> Spoken:
        refused.extend(view.refusals)
        if "CONCLUSION" in view.legal:
            return view.conclude("It is written.")
        if view.offer is not None and view.offer.invites and not view.refusals:
            return view.invite(**asked, role="clerk")
        return view.say(f"I am {view.me}.")

    agents = [Agent(name, description=f"{name} writes", examples=["write"]) for name in names]
    for agent in agents:
        agent.speak(speak)
    finished = await ioa_system.run(GoalOrder(goal="Write.", team=team_of(ESSAY)), agents=agents)
    assert (finished.result.content, refused) == ("It is written.", [why])
