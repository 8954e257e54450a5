"""Answer questions about CSV files with exact figures, without a language model.

The language of the questions is small and strict: docs/questions.md. A grouped answer is attached as a CSV file, too.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from ioa import Agent, DeclinedError, TaskContext
from task_files import TABLES, have, named_in, pick_inputs, upstream_files

if TYPE_CHECKING:
    from tables import Table

agent = Agent(
    "csv-analyst",
    description="Computes statistics of CSV files and JSON records: totals, averages, medians, counts, shares, rankings and "
    "correlations, grouped by column or by month, for chosen rows. Answers questions about tables of data with exact numbers.",
    skills=["CSV and table analysis", "statistics of data columns", "group by and filter rows"],
    examples=[
        "compute the total sales per region in sales.csv",
        "total amount per category and month in 2024", "which city has the lowest average value?",
        "which region had the highest total amount in data.csv", "top 5 customers by total amount in orders.csv",
        "how many rows have a price above 100", "the median salary where city is Berlin",
        "correlation between price and quantity", "number of distinct customers in this CSV file",
        "total of price times quantity per product", "how many rows are in the table",
        "average pages per language in this JSON file",
    ],
    tags=["csv", "data", "statistics"],
    may_team_up=False,
)  # fmt: skip


@agent.task
def run(task: str, ctx: TaskContext) -> str:
    """Answer the questions for the file they name, else for the only file whose columns they speak of."""
    from answers import answer  # pandas takes longer to load than an agent to start
    from questions import understand

    table, questions = understand(task, read_tables(task, ctx))
    answers = [answer(question, table) for question in questions]
    for index, (question, found) in enumerate(zip(questions, answers, strict=True)):
        if found.frame is not None:
            prefix = f"{index + 1}-" if len(answers) > 1 else ""
            per = f" by {' '.join(map(str, question.keys))}" if question.keys else ""
            name = re.sub(r"[^a-z0-9]+", "-", f"{question.figure}{per}".lower()).strip("-")[:80]
            ctx.artifact(f"{prefix}{name}.csv", found.frame.to_csv(index=False, float_format="%.15g"), "text/csv")
    return "\n\n".join(found.text for found in answers)


def read_tables(task: str, ctx: TaskContext) -> list[Table]:
    """Read the tables that a task is about: inputs, or what earlier tasks attached.

    Raises:
        DeclinedError: There is none.
        InvalidInputError: It cannot be read.
    """
    from tables import read_table

    files = pick_inputs(task, ctx, TABLES)
    earlier = upstream_files(ctx, TABLES)
    if not files or named_in(task, earlier):
        files = named_in(task, earlier) or earlier
    if not files:
        raise DeclinedError("There is no CSV file to analyse.", hint=have(ctx))
    return [read_table(file.path, file.name) for file in files]


if __name__ == "__main__":
    agent.run()
