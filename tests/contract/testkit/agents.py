"""Agents for tests of the test kit."""

from __future__ import annotations

import asyncio

from ioa import Agent, TaskContext


def translator() -> Agent:
    """An agent that translates two words, reports and attaches a file."""
    agent = Agent("translator", description="Translates words into French", examples=["translate bread into French"])

    @agent.task
    def translate(task: str, ctx: TaskContext) -> str:
        ctx.progress("looking up", 0.5)
        ctx.progress("writing down")
        french = {"soup": "soupe", "bread": "pain"}
        found = [french[word] for word in task.lower().replace("'", " ").split() if word in french]
        if not found:
            raise ValueError("I know soup and bread only.")
        ctx.artifact("menu.txt", "\n".join([*found, *(result.content for result in ctx.results)]))
        return ", ".join(found)

    return agent


def counter() -> Agent:
    """An agent that counts the lines of files."""
    agent = Agent("counter", description="Counts lines of files", examples=["count the lines of the file"])

    @agent.task
    async def count(task: str, ctx: TaskContext) -> str:
        return f"{sum(len(file.path.read_text().splitlines()) for file in ctx.inputs)} lines"

    return agent


def hanging(begun: asyncio.Event | None = None) -> Agent:
    """An agent that never answers, and sets an event at the start."""
    agent = Agent("sleeper", description="Sleeps", examples=["sleep for a while"])

    @agent.task
    async def sleep(task: str) -> str:
        if begun is not None:
            begun.set()
        await asyncio.Event().wait()
        return "never"

    return agent
