"""An agent that works for two tenants in one process, by a key of each, and is to both a member like others."""

from __future__ import annotations

from pathlib import Path

from ioa.adapters.nkey_seeds import create_seed
from ioa.errors import UnavailableError
from ioa.local.fork_server import Program
from ioa.protocol.goal_order import GoalOrder
from ioa.protocol.goals import Reason
from ioa.protocol.ids import AgentId, GoalName
from tests.integration.security.secured import open_processes
from tests.integration.security.tenants import TWO, open_tenants
from tests.integration.security.town import SOON, USER, Town, open_town_on
from tests.rig.deadline import eventually

STAR = AgentId("star")
_AGENT = """
import asyncio, os, pathlib
from ioa import Agent
from ioa.brain import Alone, ConcludeGroupDiscussion, Conclusion, TeamLaunch

HERE = pathlib.Path(__file__).parent

class Patient:
    async def form_team(self, mission, tools):
        (HERE / mission.text).touch()
        while mission.text == "wait" and not (HERE / "go").exists():
            await asyncio.sleep(0.02)
        return TeamLaunch(members=())

    async def speak(self, view):
        return ConcludeGroupDiscussion()

    async def conclude(self, view):
        return Conclusion(content=str(os.getpid()))

    async def approach(self, task, tools):
        return Alone(task_desc=task.spec.task_desc)

agent = Agent("star", description="Waits.", brain=Patient())

@agent.task
def run(task: str) -> str:
    return task
"""


async def test_an_agent_works_for_two_tenants(tmp_path: Path) -> None:
    """While all its slots of one are taken it leads the other's goal, remembers each apart, and whoever refuses it harms nobody."""
    (tmp_path / "star.py").write_text(_AGENT)
    (tmp_path / "unknown").write_text(create_seed())
    async with open_tenants(tmp_path, [STAR]) as (one, two), open_town_on(one, ()) as first, open_town_on(two, ()) as second:
        env = {
            "IOA_NATS_SEED": str(one.folder / STAR / STAR),
            "IOA_TENANT_SEEDS": f"{TWO}={two.folder / STAR / STAR},three={tmp_path / 'unknown'}",
            "IOA_AGENT_DATA": str(tmp_path / "agents"),
            "IOA_GOALS_AT_ONCE": "1",
        }
        async with open_processes(one, [Program(STAR, "ioa.hosting", (f"{tmp_path / 'star.py'}:agent",), env)]) as processes:
            for town in (first, second):
                await eventually(lambda town=town: _online(town), {STAR}.issuperset, within=SOON)  # type: ignore[misc]
            waiting = await first.user.launch(GoalOrder(goal="wait", agent=STAR))
            await eventually((tmp_path / "wait").exists, within=SOON)
            done = await second.outcome(await second.user.launch(GoalOrder(goal="quick", agent=STAR)))
            (tmp_path / "go").touch()
            assert [done, await first.outcome(waiting)] == [(Reason.CONCLUDED, str(processes[STAR].pid))] * 2
            listed = [[status.record.goal.name for status in (await town.user.goals()).goals] for town in (first, second)]
            assert listed[0] == [GoalName(USER, waiting)] and GoalName(USER, waiting) not in listed[1]
    memories = {str(file.relative_to(tmp_path / "agents")) for file in (tmp_path / "agents").rglob("memory.sqlite")}
    assert memories == {"star/memory.sqlite", "of.two/star/memory.sqlite"}


async def _online(town: Town) -> set[str]:
    try:
        return {str(status.card.agent_id) for status in await town.user.agents(online_only=True)} or {"nobody"}
    except UnavailableError:
        return {"nobody"}
