"""Answer questions about CSV files with exact figures, without a language model.

    total sales per region in sales.csv
    which product had the highest revenue in March 2024?
    average price for electronics above 100, by month
    correlation between units and revenue
    how many rows have missing values

The question's words are matched with the file's own column names and cell values, so any file works. What is not understood is
refused with the list of columns; nothing is guessed. A grouped answer is attached as a CSV file, too.
"""

from __future__ import annotations

import pandas as pd

from answer_parts import Answer
from ioa import Agent
from ioa.agent.sdk import TaskContext
from ioa.errors import InvalidInputError
from table_answer import answer
from table_question import understand_all
from table_reading import SUFFIXES, Table, read_table
from task_files import have, named_in, pick_inputs, upstream_files

agent = Agent(
    "csv-analyst",
    description="Computes statistics of CSV files: totals, averages, medians, counts, shares, rankings, growth and correlations, "
    "grouped by column or by month, for chosen rows. Answers questions about tables of data with exact numbers.",
    skills=["CSV and table analysis", "statistics of data columns", "group by and filter rows"],
    examples=[
        "compute the total sales per region in sales.csv",
        "total units per category in data.csv",
        "sum up the amounts by category and month in 2024",
        "which city had the lowest average value?",
        "which region had the highest total in data.csv",
        "top 5 customers by amount in orders.csv",
        "how many rows have a price above 100",
        "the median salary of employees in Berlin",
        "correlation between price and quantity",
        "describe this CSV file: columns, missing values and summary statistics",
        "what share of the revenue comes from the North",
        "growth of revenue from January to March",
    ],
    tags=["csv", "data", "statistics"],
    may_team_up=False,
)


@agent.task
def run(task: str, ctx: TaskContext) -> str:
    """Answer the question for the files it names, else for the file whose columns it speaks of."""
    question = task
    for file in ctx.inputs:  # a file's name says which file, not what to compute
        question = question.replace(file.name, " ")
    answers = answer_tables(question, read_tables(task, ctx))
    for index, found in enumerate(answers):
        if found.frame is not None:
            prefix = f"{index + 1}-" if len(answers) > 1 else ""
            ctx.artifact(f"{prefix}{found.name}.csv", found.frame.to_csv(index=False, float_format="%.15g"), "text/csv")
    return "\n\n".join(found.text for found in answers)


def read_tables(task: str, ctx: TaskContext) -> list[Table]:
    """Read the tables that a task is about: inputs, or what earlier tasks attached.

    Raises:
        InvalidInputError: There is none, or it cannot be read.
    """
    files = pick_inputs(task, ctx, SUFFIXES)
    earlier = upstream_files(ctx, SUFFIXES)
    if not files or named_in(task, earlier):
        files = named_in(task, earlier) or earlier
    if not files:
        raise InvalidInputError("There is no CSV file to analyse.", hint=have(ctx))
    return [read_table(file.path, file.name) for file in files]


def answer_tables(question: str, tables: list[Table]) -> list[Answer]:
    """Answer a question for each table it fits; tables with the same columns are taken as one.

    Raises:
        InvalidInputError: It fits none of them.
    """
    if len(tables) > 1 and len({tuple(table.frame.columns) for table in tables}) == 1:
        name = " and ".join(table.name for table in tables)
        tables = [Table(name, pd.concat([table.frame for table in tables], ignore_index=True))]
    answers, errors = [], []
    for table in tables:
        try:
            answers += [answer(query, table) for query in understand_all(question, table)]
        except InvalidInputError as error:
            errors.append(error)
    if not answers:
        raise errors[0]
    return answers


if __name__ == "__main__":
    agent.run()
