"""A task that names a stored team, on a real nats-server: served by it though its assignee dies, and failed where there is none."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

from ioa import Agent, TaskContext, TurnView
from ioa.adapters.system_clock import RandomIds, SystemClock
from ioa.adapters.this_process import new_session
from ioa.agent.agent_ports import AgentPorts
from ioa.agent.agent_runtime import AgentRuntime, RuntimeOptions
from ioa.agent.definition import AgentDefinition
from ioa.agent.rules import RuleBrain
from ioa.agent.turn_view import Said as Spoken
from ioa.client.history import conversation
from ioa.concurrency import beside
from ioa.group.events import SubgroupClosed
from ioa.protocol.goal_order import GoalOrder
from ioa.protocol.goals import GoalResult, Reason
from ioa.protocol.ids import AgentId, TaskId, comm_id_of_task
from ioa.protocol.team import team_of
from ioa.runtime.process import StopSignal
from ioa_testkit.planes import Plane, open_plane
from tests.rig.agent_stores import UnreliableStore
from tests.rig.deadline import eventually

PANEL = team_of(
    {
        "team": "panel",
        "ends": "last",
        "roles": {"chair": "worker", "critic": {"need": "finds faults"}},
        "nodes": [{"name": "talk", "roles": ["chair", "critic"], "max": 2}],
    }
)
CREW: dict[str, Any] = {
    "team": "crew",
    "ends": "last",
    "roles": {"lead": "lead", "hand": "worker"},
    "nodes": [{"name": "work", "roles": ["lead"], "tasks": True, "max": 1}],
}
WITHIN = timedelta(seconds=30)


class Crew:
    """A lead that has the worker serve a task with a team; a helper plays in that team beside the worker."""

    def __init__(self, plane: Plane, folder: Path) -> None:
        self._plane, self._folder = plane, folder
        self._stores: dict[str, UnreliableStore] = {}
        self.speaking, self.goes_on = asyncio.Event(), asyncio.Event()
        self.said: list[str] = []

    def lead(self) -> Agent:
        """Who names the team that its goal ends with."""
        agent = Agent("lead", description="leads")

        @agent.speak
        def speak(view: TurnView) -> Spoken:
            if not view.tasks:
                return view.assign({"worker": "Judge the bridge."}, team=view.goal.split()[-1])
            return view.say(view.tasks[-1].conclusion)

        return agent

    def worker(self) -> Agent:
        """Who has the task."""
        agent = Agent("worker", description="works", may_team_up=True)

        @agent.task
        def work(task: str) -> str:
            self.said.append(task)
            return "The bridge is long."

        return agent

    def helper(self) -> Agent:
        """Who speaks when it may."""
        agent = Agent("helper", description="finds faults", examples=["finds faults"])

        @agent.task
        async def criticise(task: str, ctx: TaskContext) -> str:
            self.speaking.set()
            await self.goes_on.wait()
            return "It is too long."

        return agent

    @asynccontextmanager
    async def running(self, agent: AgentDefinition) -> AsyncIterator[None]:
        """Run an agent on the memory that it left; on leaving it dies, in whatever it does."""
        clock, ids, agent_id = SystemClock(), RandomIds(), AgentId(agent.agent_id)
        store = self._stores.setdefault(agent_id, UnreliableStore(self._folder / f"{agent_id}.sqlite"))
        ports = AgentPorts(self._plane.network, store, clock, ids, RuleBrain())
        options = RuntimeOptions(self._folder / agent_id, takeover=timedelta(0))
        client = AgentRuntime(agent, agent.card_as(agent_id), ports, new_session(clock, ids), options)
        async with beside(client.run(StopSignal())):
            await eventually(self._plane.client.agents, lambda known: agent_id in [one.card.agent_id for one in known])
            yield

    async def reach(self, team: str) -> GoalResult:
        """Have the goal done."""
        goal_id = await self._plane.client.submit(GoalOrder(goal=f"Have it judged by the team {team}", team=team_of(CREW)))
        async with asyncio.timeout(WITHIN.total_seconds()):
            return await self._plane.client.wait_for_result(goal_id)


async def test_a_team_serves_the_task_though_its_assignee_dies(nats_url: str, tmp_path: Path) -> None:
    """It has one group and one conclusion, which is the result of the task; its assignee goes on where it was."""
    async with open_plane(nats_url) as plane:
        crew = Crew(plane, tmp_path)
        await plane.client.put_team(PANEL)
        async with crew.running(crew.lead()), crew.running(crew.helper()):
            await eventually(plane.client.index_status, lambda known: known.cards >= 2, within=WITHIN)
            async with crew.running(crew.worker()):
                reaching = asyncio.create_task(crew.reach("panel"))
                await asyncio.wait_for(crew.speaking.wait(), WITHIN.total_seconds())
            async with crew.running(crew.worker()):
                crew.goes_on.set()
                result = await reaching
                events = [one.entry.event for one in await conversation(plane.client, result.comm_id)]
        closed = [one for one in events if isinstance(one, SubgroupClosed)]
        assert (result.reason, result.content, len(crew.said)) == (Reason.CONCLUDED, "It is too long.", 1)
        assert [(one.subgroup, one.content) for one in closed] == [
            (comm_id_of_task(result.comm_id, TaskId("t1-1")), "It is too long.")
        ]
