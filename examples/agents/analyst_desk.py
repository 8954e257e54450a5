"""Coordinate a briefing: a nested group does the tasks of a list, and this agent merges their results into one text."""

import re

from ioa import Agent, DeclinedError, TaskContext

agent = Agent(
    "analyst-desk", description="Coordinates a briefing: leads a team that does the tasks of a list, and merges their results.",
    skills=["coordinate a briefing", "lead a team of analysts"], examples=[
        "briefing:\n- sum of NUMBER by COLUMN in FILE.csv\n- bar chart of #1", "briefing", "a briefing", "briefing:",
        "briefing of data", "briefing with a list of tasks",
    ], tags=["briefing", "coordinator"], declines=True, may_team_up=True,
)  # fmt: skip


@agent.task
def run(task: str, ctx: TaskContext) -> str:
    """Merge the results of the nested group, and pass on their files."""
    if not re.match(r"(?i)briefing:?\s*\n", task) or not ctx.results:
        raise DeclinedError("This is not a briefing.", hint="Write 'briefing:' and a list of tasks below it.")
    for result in ctx.results:
        for file in result.artifacts:
            ctx.artifact(file.name, file.path.read_bytes(), file.media_type)
    return "\n\n".join(f"{number}. {result.task_desc}\n{result.content}" for number, result in enumerate(ctx.results, 1))
