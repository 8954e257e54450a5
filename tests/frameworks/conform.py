"""Put a real framework to the ten cases and to a debate, where it is installed: `python -m tests.frameworks.conform langgraph`.

It prints a line for each case, and ends with status 1 if a promise is not kept. There is no pytest in such an environment.
"""

from __future__ import annotations

import asyncio
import importlib
import sys
import tempfile
import time
from datetime import timedelta
from pathlib import Path
from typing import Any

from ioa import Agent
from ioa.agent.turn_view import Said, TurnView
from ioa.hosting.agent import Agent as HostedAgent
from ioa.protocol.goal_order import GoalOrder
from ioa.protocol.messages import Discussion
from ioa.protocol.teams.team_file import team_of
from ioa.testing.conformance import CASES, ForeignAgent
from ioa_testkit.system import System

LEFT_OUT = {("crewai", "bad-output"): "it refuses an empty answer itself, by an error that is no TaskError"}


def debate_team(assistant: str) -> Any:
    """A team of two, of which the assistant has the first word."""
    return {
        "team": "debate",
        "leader": "against",
        "roles": {"for": {"agent": assistant, "prompt": "Say that buses need the room."}, "against": "sceptic"},
        "nodes": [{"name": "debate", "roles": ["for", "against"], "max": 4}],
    }


async def debate(assistant: HostedAgent, folder: Path) -> None:
    """Let the assistant argue with another agent in a team of two, on a real nats-server.

    It repeats its task without the first word.
    """
    sceptic = Agent("sceptic", description="Argues against", examples=["argue"])

    @sceptic.speak
    def speak(view: TurnView) -> Said:
        if "CONCLUSION" in view.legal:
            return view.conclude("Undecided.")
        return view.say(f"No, for the {len(view.conversation)}. time.")

    system = System(folder)
    system.within = timedelta(minutes=1)
    order = GoalOrder(goal="Should the city close its centre to cars?", team=team_of(debate_team(assistant.agent_id)))
    finished = await system.run(order, agents=[assistant, sceptic])
    said = [one for one in finished.messages() if isinstance(one.payload, Discussion)]
    words = [one.payload.content for one in said if isinstance(one.payload, Discussion)]
    assert [one.header.sender for one in said] == [assistant.agent_id, "sceptic"] * 2, finished.transcript
    assert "buses need the room" in words[0] and "No, for the 1. time." in words[2], finished.transcript
    assert finished.content == "Undecided.", finished.transcript


def main(name: str) -> int:
    """Try all cases, each in a loop of its own, as a test does."""
    began = time.perf_counter()
    row = importlib.import_module(f"tests.frameworks.real.{name}_row")
    print(f"{name}: imported in {time.perf_counter() - began:.1f} s")
    failed = 0
    checks = [(case.name, str(case), case.check) for case in CASES] + [("debate", "debate", debate)]
    for short, case, check in checks:
        if why := LEFT_OUT.get((name, short)):
            print(f"{name}: {case} left out: {why}")
            continue
        with tempfile.TemporaryDirectory() as folder:
            try:
                asyncio.run(check(row.adopted(ForeignAgent(Path(folder))), Path(folder)))
            except BaseException as error:  # noqa: BLE001 - of a framework anything may come
                failed += 1
                print(f"{name}: {case} FAILED: {type(error).__name__}: {str(error)[:500]}")
            else:
                print(f"{name}: {case} kept")
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
