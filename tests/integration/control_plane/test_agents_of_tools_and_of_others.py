"""Agents that do more than speak, on a whole system: one with tools behind guards, and one that somebody else has written."""

from __future__ import annotations

import sys
from datetime import timedelta
from typing import Any

from engineer import agent as engineer
from ioa import Agent, adopt
from ioa.agent.hooks import Said, TurnView
from ioa.protocol.goal_order import GoalOrder
from ioa.protocol.goals import Reason
from ioa.protocol.messages import Conclusion, Discussion
from ioa.protocol.team import team_of
from ioa.testing import ScriptedModel, wants
from ioa_testkit.system import System

SUMS = "def add(a: int, b: int) -> int:\n    return a + b\n"
TEST = "import unittest, sums\nclass Adds(unittest.TestCase):\n    def test(self): self.assertEqual(sums.add(2, 3), 5)\n"

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


async def test_an_engineer_hands_over_what_passed_its_test_and_nothing_from_outside(ioa_system: System) -> None:
    """Its model wants to write outside of the folder first, is refused before anything runs, and does it right then."""
    ioa_system.within = timedelta(minutes=1)
    model = ScriptedModel(
        [
            wants("write_file", path="../sums.py", text=SUMS),
            wants("write_file", path="sums.py", text=SUMS),
            wants("write_file", path="test_sums.py", text=TEST),
            wants("bash", command="python -m unittest", keep=["sums.py"]),
            "sums.py adds up, and its test passes.",
        ]
    )
    async with ioa_system.group("Write add with a test", agent=engineer, model=model) as group:
        answer = await group["lead"].asks(engineer, "write add with a test")
        result = await group["lead"].concludes("It adds up.")
    told = [one.content for one in model.asked[-1].messages if one.role == "tool"]
    assert [one.startswith("Refused: Only what is in the project's folder") for one in told] == [True, False, False, False]
    assert (answer.content, answer.files) == ("sums.py adds up, and its test passes.", {"sums.py": SUMS.encode()})
    assert result.reason is Reason.CONCLUDED


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
