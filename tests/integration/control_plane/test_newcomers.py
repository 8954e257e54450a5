"""Who joins a group under a policy in which not all hear all, and whom a watcher adds: what it is shown, and who speaks next."""

from __future__ import annotations

from typing import Any

from ioa import Agent, TurnView
from ioa.agent.hooks import Said as Spoken
from ioa.protocol.goal_order import GoalOrder
from ioa.protocol.team import team_of
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
