"""Agents whose functions do what their task says, each in a process of its own: `python agents.py NAME`."""

from __future__ import annotations

import asyncio
import os
import sys
import threading
from pathlib import Path

from ioa import Agent
from ioa.agent.task_context import TaskContext

FOLDER = Path(os.environ["NOTES"])


def _note(ctx: TaskContext, task: str) -> None:
    with (FOLDER / "runs").open("a") as runs:
        runs.write(f"{os.getpid()} {ctx.task_id} {ctx.attempt} {task}\n")


hanger = Agent("hanger", description="Hangs in a thread, or is quick.", examples=["hang or be quick"], may_team_up=False)
twin = Agent("twin", description="Does what it is told, twice as fast.", examples=["do something as a twin"], may_team_up=False)


@hanger.task
def hang(task: str, ctx: TaskContext) -> str:
    """Block a thread for ever."""
    _note(ctx, task)
    if "hang" in task:
        threading.Event().wait()
    return "quick"


@twin.task
async def work(task: str, ctx: TaskContext) -> str:
    """Take a moment."""
    _note(ctx, task)
    await asyncio.sleep(0.2)
    return "done"


def _waiting(name: str) -> Agent:
    """Return an agent whose tasks end when a file exists."""
    agent = Agent(name, description="Waits for a file.", examples=["wait for the file"], may_team_up=False)

    @agent.task
    async def wait(task: str, ctx: TaskContext) -> str:
        _note(ctx, task)
        while not (FOLDER / "go").exists():  # noqa: ASYNC110 - the file is of another process
            await asyncio.sleep(0.05)
        return "waited"

    return agent


waiter, waiter_b, waiter_c = _waiting("waiter"), _waiting("waiter_b"), _waiting("waiter_c")

if __name__ == "__main__":
    {"hanger": hanger, "twin": twin, "waiter": waiter}[sys.argv[1]].run()
