"""Agents for one crowded group beside small ones, several in one process: `python -m tests.rig.crowd_worker AGENT…`.

A goal's words say what its group does: `crowd 320 5` gives out 320 tasks of five seconds, as many at a time as may be; `small 7`
says something and gives out one task; `stuck 3` gives out a task that never ends. False in that nobody understands anything.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence
from functools import partial

from ioa.adapters.nats.agent_network import NatsAgentNetwork
from ioa.adapters.nats.wire.connection import open_connection
from ioa.adapters.system_clock import RandomIds, SystemClock
from ioa.agent.brain_port import TaskView
from ioa.agent.definition import AgentDefinition
from ioa.agent.turn_view import TurnView
from ioa.hosting.brains import Mind
from ioa.hosting.host import Crew, host
from ioa.hosting.settings import WorkerSettings
from ioa.ports.brain import Mission, NobodyFits, TeamLaunch, TeamTools, Utterance
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

_MOST_TRIGGERS = 256


class CrowdBrain:
    """Do what the goal's words say, with everybody of the same process."""

    def __init__(self, roster: Sequence[AgentId]) -> None:
        self._roster = roster

    async def form_team(self, mission: Mission, tools: TeamTools) -> TeamLaunch | NobodyFits:
        """Take everybody."""
        return TeamLaunch(members=tuple(agent_id for agent_id in self._roster if agent_id != mission.me.agent_id))

    async def speak(self, view: TurnView) -> Utterance:
        """Give out what is still to be given out, wait for what is open, and conclude."""
        kind, number, *more = view.charter.goal.split()
        wanted = int(number) if kind == "crowd" else 1
        others = [agent_id for agent_id in view.state.living() if agent_id != view.me]
        given = len(view.tasks)
        if kind != "crowd" and view.state.turns_taken == 0 and "DISCUSSION" in view.legal:
            return Discussion(content=f"Let us do {view.charter.goal}.", next_speaker=others[0])
        if given < wanted and others and "ASYNC_TASK_ASSIGNMENT" in view.legal:
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
        if "PAUSE" in view.legal:
            return Pause(triggers=tuple(task.task_id for task in view.state.open_tasks[:_MOST_TRIGGERS]))
        return ConcludeGroupDiscussion()

    async def conclude(self, view: TurnView) -> Conclusion:
        """Say how many tasks were done."""
        done = [task for task in view.tasks if task.outcome is TaskOutcome.DONE]
        return Conclusion(content=f"{len(done)} of {len(view.tasks)}")

    async def approach(self, task: TaskView, tools: TeamTools) -> TeamLaunch | None:
        """Do it alone."""
        return None


async def _work(task: str) -> str:
    await asyncio.sleep(float(task.split()[0]))
    return "done"


def _agent(agent_id: AgentId) -> AgentDefinition:
    agent = AgentDefinition(agent_id, description=f"One of a crowd, {agent_id}.", examples=[f"crowd of {agent_id}"])
    agent.task(_work)
    return agent


async def _serve(roster: Sequence[AgentId], settings: WorkerSettings, stop: StopSignal) -> None:
    mind = Mind(CrowdBrain(roster))
    async with open_connection(settings.nats("ioa-crowd")) as client:
        members = [(host(_agent(agent_id)), mind) for agent_id in roster]
        await Crew(members, settings, NatsAgentNetwork(client), SystemClock(), RandomIds()).serve(stop)


if __name__ == "__main__":
    run_process(WorkerSettings, partial(_serve, list(map(AgentId, sys.argv[1:]))), name="ioa-crowd")
