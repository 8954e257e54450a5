"""An agent that takes its time, so that the demo has one to kill in the middle of a task."""

import asyncio

from ioa import Agent, TaskContext

agent = Agent(
    "slow-counter",
    description="Counts slowly, one number a second",
    examples=["count slowly to four", "count from one to three, slowly", "count up to five, a number a second"],
)
_NUMBERS = ("one", "two", "three", "four", "five")


@agent.task
async def count(task: str, ctx: TaskContext) -> str:
    """Count up to the highest number that the task names."""
    named = [at for at, number in enumerate(_NUMBERS, 1) if number in task.lower().split()]
    if not named:
        raise ValueError("I count to one, two, three, four or five: say to which.")
    for done, number in enumerate(_NUMBERS[: max(named)], 1):
        await asyncio.sleep(1)
        ctx.progress(number, done / max(named))
    return ", ".join(_NUMBERS[: max(named)])
