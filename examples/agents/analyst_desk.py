"""Coordinate a briefing: the figures, the chart and the report are others' work, this agent edits them into one answer.

The agent has no skill of its own but editing, so its client opens a nested team for the task (paper, section 2.3.2) and finds the
agents that compute, draw and write. Their results arrive as `ctx.results`.
"""

from ioa import Agent, DeclinedError, TaskContext

agent = Agent(
    "analyst-desk",
    description="Coordinates full briefings on data files. It leads a team of other agents that compute the figures, draw the "
    "charts and write the report, and edits their results into one briefing.",
    skills=["coordinate a full briefing", "lead a team of analysts"],
    examples=[
        "a briefing on orders.csv with total amount per month and a line chart of it",
        "prepare a full briefing on the file: compute the totals, make a bar chart of it and write a report of both",
        "have a team prepare a complete data briefing", "organise a briefing package for the management",
        "prepare a briefing on data.csv with the average per group, a chart of it and a report",
        "lead the preparation of a briefing on the data file",
    ],
    tags=["briefing", "coordination"], declines=True, may_team_up=True,
)  # fmt: skip


@agent.task
def run(task: str, ctx: TaskContext) -> str:
    """Merge what the team found into one briefing and pass its files on; decline where no team worked on the task."""
    if not ctx.results:
        hint = "Say which, as in 'a briefing on sales.csv: total units per region, a bar chart of it and a report of both'."
        raise DeclinedError("The task lists no parts that could be handed out to a team, and nothing else is done here.", hint=hint)
    parts = [f"Briefing: {task.strip().rstrip('.')}"]
    for number, result in enumerate(ctx.results, 1):
        parts.append(f"{number}. {result.task_desc} ({result.agent_id})\n{result.content.strip()}")
        for file in result.artifacts:
            ctx.artifact(file.name, file.path.read_bytes(), file.media_type)
    return "\n\n".join(parts)
