"""Agents that do more than speak, on a whole system: one with tools behind guards, and one that somebody else has written."""

from __future__ import annotations

import sys
from datetime import timedelta
from typing import Any

from ioa import Agent, adopt
from ioa.agent.turn_view import Said, TurnView
from ioa.protocol.goal_order import GoalOrder
from ioa.protocol.goals import Reason
from ioa.protocol.messages import Conclusion, Discussion
from ioa.protocol.team import team_of
from ioa_testkit.system import System

ARGUES = """\
import json, sys
order = json.loads(sys.stdin.readline())
print(json.dumps({"result": "Buses need the room. I was told: " + order["task"]}))
"""
DEBATE: Any = {
    "team": "debate",
    "goal": "Should the city close its centre to cars?",
    "roles": {"for": {"agent": "program", "prompt": "You argue for it."}, "against": "sceptic"},
    "nodes": [{"name": "debate", "roles": ["for", "against"], "max": 4}],
    "leader": "against",
}


async def test_a_program_of_somebody_else_debates(ioa_system: System) -> None:
    """It is asked as for a task, in its turns, with its part and what was said; what it answers all hear."""
    ioa_system.within = timedelta(minutes=1)
    program = adopt.command("program", [sys.executable, "-c", ARGUES], description="Argues for buses")
    sceptic = Agent("sceptic", description="Argues against")

    @sceptic.task
    def run(task: str) -> str:
        return task

    @sceptic.speak
    def speak(view: TurnView) -> Said:
        if "CONCLUSION" in view.legal:
            return view.conclude("Undecided.")
        return view.say(f"No. It was said {len(view.conversation)} times.")

    finished = await ioa_system.run(GoalOrder(goal=DEBATE["goal"], team=team_of(DEBATE)), agents=[program, sceptic])
    said = [
        (one.header.sender, one.payload.content) for one in finished.messages() if isinstance(one.payload, Discussion | Conclusion)
    ]
    assert [sender for sender, _ in said] == ["program", "sceptic", "program", "sceptic", "sceptic"], finished.transcript
    assert said[0][1].startswith("Buses need the room.") and "You argue for it." in said[0][1]
    assert "No. It was said 1 times." in said[2][1]
    assert (finished.result.reason, finished.content) == (Reason.CONCLUDED, "Undecided.")
