"""Edit what a nested team (paper, section 2.3.2) did of a briefing's listed parts into one answer; its client opens that team."""

import re

from ioa import Agent, DeclinedError, TaskContext
from request import account_for, words_in

agent = Agent(
    "analyst-desk",
    description="Coordinates full briefings on data files. It leads a team of other agents that compute the figures, draw the "
    "charts and write the report, and edits their results into one briefing.",
    skills=["coordinate a full briefing", "lead a team of analysts"], examples=[
        "a briefing on orders.csv with total amount per month and a line chart of it",
        "prepare a full briefing on sales.csv: total units per region, a bar chart of it and a report of both",
        "prepare a briefing on data.csv with average price per shop, a chart of it and a report",
        "a complete briefing on team.csv: number of rows per city and median pay per city",
        "write a full briefing on costs.csv: total cost per month, total cost per shop and a report",
        "give me a briefing on orders.tsv: top 3 customers by total amount, a bar chart of it and a report",
    ], tags=["briefing", "coordination"], declines=True, may_team_up=True,
)  # fmt: skip
_ASKED = r"(?i)(?:please )?(?:(?:prepare|write|make|create|draft|produce|compile|give me) )?"
_HEAD = re.compile(_ASKED + r"(?:(?:an?|the|full|complete|data) )*(?:briefing|report|document|summary)\b")
_JOINTS = frozenset("on of about for from with including containing covering comprising and then the in file".split())
_HINT = "Say which, as in 'a briefing on sales.csv: total units per region, a bar chart of it and a report of both'."


@agent.task
def run(task: str, ctx: TaskContext) -> str:
    """Merge what the team found into one briefing and pass its files on; decline where no team worked on the task."""
    head = _HEAD.match(task)
    parts_said = task[head.end() :] if head else ""
    if not words_in(parts_said) or not ctx.results:
        raise DeclinedError("The task lists no parts to hand out to a team, and nothing else is done here.", hint=_HINT)
    done = words_in(" ".join([*(one.task_desc for one in ctx.results), *(file.name for file in ctx.inputs)]))
    account_for(parts_said, _JOINTS.union(done), _HINT)
    parts = [f"Briefing: {task.strip().rstrip('.')}"]
    for number, result in enumerate(ctx.results, 1):
        parts.append(f"{number}. {result.task_desc} ({result.agent_id})\n{result.content.strip()}")
        for file in result.artifacts:
            ctx.artifact(file.name, file.path.read_bytes(), file.media_type)
    return "\n\n".join(parts)
