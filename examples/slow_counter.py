"""An agent that takes its time, so that the demo has one to kill in the middle of a task."""

from __future__ import annotations

import asyncio

from ioa import Agent, TaskContext

agent = Agent(
    "slow-counter",
    description="Counts slowly, one number a second",
    examples=["count slowly to four", "count from one to three, slowly", "count up to five, a number a second"],
    may_team_up=False,
)
_NUMBERS = ("one", "two", "three", "four", "five")


@agent.task
async def count(task: str, ctx: TaskContext) -> str:
    """Count up to the number that the task names."""
    last = next((number for number in _NUMBERS if number in task.lower().split()), None)
    if last is None:
        raise ValueError("I count to one, two, three, four or five: say to which.")
    counted = _NUMBERS[: _NUMBERS.index(last) + 1]
    for done, number in enumerate(counted, start=1):
        await asyncio.sleep(1)
        ctx.progress(number, done / len(counted))
    return ", ".join(counted)


if __name__ == "__main__":
    agent.run()
