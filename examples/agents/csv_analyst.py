"""Compute one figure of a CSV file for each value of a column, exactly; the answer is also attached as a CSV file."""

import csv
import io
import re
from collections import defaultdict
from collections.abc import Callable
from fractions import Fraction

from ioa import Agent, DeclinedError, InvalidInputError, TaskContext
from request import named_file, shown, slug
from tables import Table, read_table

agent = Agent(
    "csv-analyst", description="Computes the sum, mean, minimum, maximum or count of a column of a CSV file for each value of "
    "another column, for all rows or for those with one value.",
    skills=["statistics of CSV tables", "group rows by a column"], examples=[
        "sum of NUMBER by COLUMN in FILE.csv", "sum of revenue by region where year is 2024", "mean of price by product",
        "max of temperature by city in weather.csv", "min of salary by department", "count of rows by country",
        "sum of amount by month where customer is Ada in orders.csv",
    ], tags=["csv", "data", "statistics"], declines=True, may_team_up=False,
)  # fmt: skip
_FORM = (
    r"(?:(?P<figure>sum|mean|min|max) of (?P<column>.+?)|count of rows) by (?P<key>.+?)"
    r"(?: where (?P<filter>.+?) is (?P<value>.+?))?(?: in (?P<file>#\d+|\S+\.(?:csv|tsv)|NAMES))?"
)
_HINT = "Write 'sum of COLUMN by COLUMN [where COLUMN is VALUE] [in FILE]', or mean, min, max, or 'count of rows by COLUMN …'."
_FIGURES: dict[str, Callable[[list[Fraction]], Fraction]] = {
    "sum": lambda values: sum(values, Fraction()), "mean": lambda values: sum(values, Fraction()) / len(values),
    "min": min, "max": max, "count": lambda values: Fraction(len(values)),
}  # fmt: skip


@agent.task
def run(task: str, ctx: TaskContext) -> str:
    """Answer one question about one table."""
    names = "|".join(re.escape(file.name) for file in ctx.inputs)
    asked = re.fullmatch(_FORM.replace("NAMES", names or "#"), task.strip(), re.IGNORECASE)
    if asked is None:
        raise DeclinedError("This is not a question about a table.", hint=_HINT)
    table = read_table(named_file(asked["file"] or "", ctx, (".csv", ".tsv")))
    figure, rows = (asked["figure"] or "count").lower(), _chosen(table, asked["filter"], asked["value"])
    key, column = table.column(asked["key"]), table.column(asked["column"]) if asked["column"] else None
    groups, empty = defaultdict[str, list[Fraction]](list), 0
    for row in rows:
        number = Fraction(1) if column is None else table.number(row, column)
        empty += number is None
        groups[row[key] or "(empty)"] += [] if number is None else [number]
    values = {label: _FIGURES[figure](groups[label]) for label in sorted(groups) if groups[label]}
    if not values:
        raise InvalidInputError(f"The column {asked['column']} of {table.name} has no number in these rows.")
    name = f"{figure} of {table.columns[column] if column is not None else 'rows'}"
    title = f"{name} by {table.columns[key]}" + (f" where {asked['filter']} is {asked['value']}" if asked["filter"] else "")
    written = io.StringIO()
    lines = [(label, shown(value).removeprefix("≈ ")) for label, value in values.items()]
    csv.writer(written, lineterminator="\n").writerows([(table.columns[key], name), *lines])
    ctx.artifact(f"{slug(title)}.csv", written.getvalue(), "text/csv")
    used = f"{len(rows)} of {len(table.rows)} rows" + f"; left out: {empty} with an empty cell" * bool(empty)
    return f"{title} in {table.name} ({used}):\n" + "\n".join(f"- {label}: {shown(value)}" for label, value in values.items())


def _chosen(table: Table, column: str | None, value: str | None) -> list[list[str]]:
    """Return the rows with a value in a column, or all rows."""
    if column is None:
        return table.rows
    at = table.column(column)
    if not (rows := [row for row in table.rows if row[at] == value]):
        some = ", ".join(sorted({row[at] for row in table.rows})[:8])
        raise InvalidInputError(f"No row of {table.name} has {value!r} as its {table.columns[at]}. Some values: {some}.")
    return rows
