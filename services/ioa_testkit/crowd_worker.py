"""Agents for one crowded group beside small ones, several in one process: `python -m ioa_testkit.crowd_worker`.

A goal's words say what its group does: `crowd 320 5` gives out 320 tasks of five seconds, as many at a time as may be; `small 7`
says something and gives out one task; `stuck 3` gives out a task that never ends. False in that nobody understands anything.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import AsyncExitStack
from pathlib import Path

from pydantic import Field

from ioa.adapters.nats.agent_network import NatsAgentNetwork
from ioa.adapters.nats.connection import open_connection
from ioa.adapters.sqlite_store import open_sqlite_store
from ioa.adapters.system_clock import RandomIds, SystemClock
from ioa.adapters.this_process import new_session
from ioa.agent.client import AgentClient, ClientOptions
from ioa.agent.definition import AgentDefinition
from ioa.ports.brain import Alone, GroupView, Mission, NobodyFits, TaskView, Team, TeamTools, Utterance
from ioa.protocol.ids import AgentId, TaskId
from ioa.protocol.messages import (
    MAX_TASKS_PER_ASSIGNMENT,
    AsyncTaskAssignment,
    ConcludeGroupDiscussion,
    Conclusion,
    Discussion,
    Pause,
    SyncTaskAssignment,
    TaskOutcome,
    TaskSpec,
)
from ioa.runtime.process import StopSignal, run_process
from ioa.runtime.settings import ProcessSettings

_MOST_TRIGGERS = 256


class CrowdSettings(ProcessSettings):
    """What a process of agents is told: who is in it, with commas between, and where they keep their memory."""

    agent_data: Path = Field(default=Path(".ioa/agents"))
    crowd_agents: str = Field(default="", description="the agents of a process of the crowd, with commas between")


class CrowdBrain:
    """Do what the goal's words say, with everybody of the same process."""

    def __init__(self, roster: Sequence[AgentId]) -> None:
        self._roster = roster

    async def form_team(self, mission: Mission, tools: TeamTools) -> Team | NobodyFits:
        """Take everybody."""
        return Team(members=tuple(agent_id for agent_id in self._roster if agent_id != mission.me.agent_id))

    async def speak(self, view: GroupView) -> Utterance:
        """Give out what is still to be given out, wait for what is open, and conclude."""
        kind, number, *more = view.charter.goal.split()
        wanted = int(number) if kind == "crowd" else 1
        others = [agent_id for agent_id in view.state.living() if agent_id != view.me]
        given = len(view.tasks)
        if kind != "crowd" and view.state.turns_taken == 0 and Discussion in view.legal:
            return Discussion(content=f"Let us do {view.charter.goal}.", next_speaker=others[0])
        if given < wanted and others and AsyncTaskAssignment in view.legal:
            seconds = {"crowd": more[0] if more else "5", "small": "0", "stuck": "86400"}[kind]
            count = min(MAX_TASKS_PER_ASSIGNMENT, wanted - given)
            specs = tuple(
                TaskSpec(
                    task_id=TaskId(f"t{view.state.turn}-{one}"),
                    assignee=others[one % len(others)],
                    task_desc=f"{seconds} work {view.state.comm_id}/{given + one}",
                )
                for one in range(count)
            )
            return AsyncTaskAssignment(tasks=specs) if kind == "crowd" else SyncTaskAssignment(tasks=specs)
        if Pause in view.legal:
            return Pause(triggers=tuple(task.task_id for task in view.state.open_tasks[:_MOST_TRIGGERS]))
        return ConcludeGroupDiscussion()

    async def conclude(self, view: GroupView) -> Conclusion:
        """Say how many tasks were done."""
        done = [task for task in view.tasks if task.outcome is TaskOutcome.DONE]
        return Conclusion(content=f"{len(done)} of {len(view.tasks)}")

    async def approach(self, task: TaskView, tools: TeamTools) -> Alone | Team:
        """Do it alone."""
        return Alone(task.spec.task_desc)


async def _work(task: str) -> str:
    await asyncio.sleep(float(task.split()[0]))
    return "done"


async def _serve(settings: CrowdSettings, stop: StopSignal) -> None:
    roster = [AgentId(name) for name in settings.crowd_agents.split(",")]
    clock, ids = SystemClock(), RandomIds()
    async with AsyncExitStack() as stack, asyncio.TaskGroup() as group:
        for agent_id in roster:
            client = await stack.enter_async_context(open_connection(settings.nats(agent_id)))
            agent = AgentDefinition(agent_id, description=f"One of a crowd, {agent_id}.", examples=[f"crowd of {agent_id}"])
            agent.task(_work)
            folder = settings.agent_data / agent_id
            store = await stack.enter_async_context(open_sqlite_store(folder / "memory.sqlite"))
            options = ClientOptions(folder / "groups", tasks_at_once=2_000)
            network, brain = NatsAgentNetwork(client), CrowdBrain(roster)
            card = agent.card_as(agent_id)
            session = new_session(clock, ids)
            group.create_task(AgentClient(agent, card, brain, network, store, clock, ids, session, options).run(stop))


if __name__ == "__main__":
    run_process(CrowdSettings, _serve, name="ioa-crowd")
