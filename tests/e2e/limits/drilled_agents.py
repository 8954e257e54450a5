"""Agents whose tasks run until they are stopped. Their tools record in `DRILL_FOLDER` what they do.

Run as a file of its own: the brain is replaced in this process alone.
"""

from __future__ import annotations

import asyncio
import os
import sys
import time
from datetime import timedelta
from pathlib import Path

from ioa import Agent
from ioa.agent.brain_port import TaskView
from ioa.agent.definition import AgentDefinition
from ioa.agent.task_context import TaskContext
from ioa.agent.turn_view import TurnView
from ioa.hosting.host import serve
from ioa.hosting.loading import load_agent
from ioa.ports.brain import Mission, TeamLaunch, TeamTools, Utterance
from ioa.protocol.ids import AgentId, TaskId
from ioa.protocol.messages import ConcludeGroupDiscussion, Conclusion, SyncTaskAssignment, TaskSpec

FOLDER = Path(os.environ["DRILL_FOLDER"])
EXAMPLES = Path(__file__).parents[3] / "examples" / "agents"
RUNNER = "python-runner"
LONG = "work until stopped"
TEAMS = {"deeper": ("bottom",), "deepest": ("walker", "crawler", RUNNER)}
"""Who serves a task that is given to a nested team."""

_LOOP = f"import os, time; open({str(FOLDER / 'runner.started')!r}, 'w').write(str(os.getpid())); time.sleep(600)"


def note(name: str, text: str = "") -> None:
    """Add a line to a tool's record."""
    with (FOLDER / name).open("a") as record:
        record.write(f"{text}\n")


walker = Agent("walker", description="Walks.", may_team_up=False)
crawler = Agent("crawler", description="Crawls.", may_team_up=False)


@walker.task
async def walk(task: str, ctx: TaskContext) -> str:
    """Work in the event loop until it is cancelled."""
    note("walker.started", str(ctx.attempt))
    try:
        await asyncio.sleep(600)
    except asyncio.CancelledError:
        note("walker.stopped")
        raise
    return f"walked in attempt {ctx.attempt}"


@crawler.task
def crawl(task: str, ctx: TaskContext) -> str:
    """Work in a thread until told to stop, reporting all the while."""
    note("crawler.started", str(ctx.attempt))
    step = 0
    while not ctx.cancelled:
        step += 1
        ctx.progress(f"step {step}")
        time.sleep(0.02)
    note("crawler.stopped")
    return "a result that comes too late"


def leading(name: str) -> Agent:
    """An agent that only leads."""
    agent = Agent(name, description="Leads.", may_team_up=True)
    agent.task(lambda task: f"{name} did {task}")
    return agent


class DrillBrain:
    """Decide by the first word of the group's goal alone."""

    async def form_team(self, mission: Mission, tools: TeamTools) -> TeamLaunch:
        """Take the colleagues."""
        return TeamLaunch(members=tuple(AgentId(name) for name in ("middle", "walker", "crawler")))

    async def speak(self, view: TurnView) -> Utterance:
        """Give out the drill's tasks once, and conclude."""
        tasks = _TASKS.get(view.charter.goal.split(":")[0], ())
        if tasks and not view.tasks:
            return SyncTaskAssignment(tasks=tasks)
        return ConcludeGroupDiscussion()

    async def conclude(self, view: TurnView) -> Conclusion:
        """State the results of the tasks."""
        return Conclusion(content="; ".join(f"{task.outcome}: {task.conclusion}" for task in view.tasks))

    async def approach(self, task: TaskView, tools: TeamTools) -> TeamLaunch | None:
        """Hand on what is meant for a nested team."""
        names = TEAMS.get(task.spec.task_desc)
        return TeamLaunch(members=tuple(AgentId(name) for name in names)) if names else None


def _task(task_id: str, assignee: str, task_desc: str, timeout: float | None = None) -> TaskSpec:
    limit = None if timeout is None else timedelta(seconds=timeout)
    return TaskSpec(task_id=TaskId(task_id), assignee=AgentId(assignee), task_desc=task_desc, timeout=limit)


_TASKS = {
    "task_deadline": (_task("t1-1", "crawler", LONG, timeout=1.5),),
    "nested": (_task("t1-1", "middle", "deeper"),),
    "deeper": (_task("t1-1", "bottom", "deepest"),),
    "deepest": (
        _task("t1-1", "walker", LONG),
        _task("t1-2", "crawler", LONG),
        _task("t1-3", RUNNER, f"run\n```python\n{_LOOP}\n```"),
    ),
}


if __name__ == "__main__":
    sys.path.insert(0, str(EXAMPLES))
    agents: list[AgentDefinition] = [*(leading(name) for name in ("boss", "middle", "bottom")), walker, crawler]
    agents.append(load_agent(f"{EXAMPLES / 'python_runner.py'}:agent"))
    serve([agent.with_card(brain=DrillBrain()) for agent in agents])
