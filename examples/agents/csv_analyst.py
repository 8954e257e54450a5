"""Answer questions about CSV files (docs/questions.md) with exact figures; a grouped answer is attached as a CSV file, too."""

from pathlib import Path

from ioa import Agent, DeclinedError, InvalidInputError, TaskContext
from ioa.files import at_hand, came, missing, named_in, pick
from request import TABLES, of_length, slug

agent = Agent(
    "csv-analyst", description="Computes statistics of CSV files: totals, averages, medians, counts and rankings, grouped by "
    "column or by month, for chosen rows. Answers questions about tables of data with exact numbers.",
    skills=["CSV and table analysis", "statistics of data columns", "group by and filter rows"], examples=[
        "compute the total sales per region in sales.csv", "total amount per category and month in 2024",
        "which city has the lowest average value?", "which region had the highest total amount in data.csv",
        "top 5 customers by total amount in orders.csv", "how many rows have a price above 100",
        "the median salary where city is Berlin", "number of distinct customers in this CSV file", "how many rows are in the table",
    ], tags=["csv", "data", "statistics"], declines=True, may_team_up=False,
)  # fmt: skip


@agent.task(of_one_user=1)
def run(task: str, ctx: TaskContext) -> str:
    """Answer the question for the file it names, or for the only one."""
    asked = of_length(task), the_table(task, ctx)
    from answers import answer_of_file  # imports pandas, which an idle agent does not need

    text, title, table = answer_of_file(*asked)
    if title:
        ctx.artifact(f"{slug(title)}.csv", table, "text/csv")
    return str(text)


def the_table(task: str, ctx: TaskContext) -> Path:
    """The table that a task is about, an input, or what earlier tasks attached; declines if there is none, or several."""
    if not (files := pick(task, ctx, TABLES)):
        unread = "".join(f": {file.name} is none of {', '.join(TABLES)}" for file in ctx.inputs[:1])
        raise DeclinedError(f"Questions about a table are answered here, and no table came{unread}.", hint=came(ctx))
    if other := [one.name for one in named_in(task, at_hand(ctx)) if one not in files]:
        raise DeclinedError(f"{other[0]} is no table.", hint="A question is about one table, and about no other file.")
    if lost := missing(task, TABLES, [file.name for file in files]):
        raise InvalidInputError(lost, hint=came(ctx))
    if len(files) > 1:
        said = f"A question is about one file, and {len(files)} may be meant: {', '.join(file.name for file in files)}."
        hint = f"End it with 'in {files[0].name}', say. Files are not joined: each is asked in a sentence of its own."
        raise DeclinedError(said, hint=hint)
    return files[0].path
