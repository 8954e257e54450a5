"""Draw charts as PNG images, of what an earlier task computed or of a question about a CSV file.

    make a bar chart of it
    pie chart of the total revenue per region in sales.csv
    line chart of total units per month
    histogram of unit_price
    scatter plot of units against revenue where category is Electronics

The question is of the language of docs/questions.md. Without a word for the kind of chart, the data decides: what follows in time
becomes a line, everything else bars.
"""

from __future__ import annotations

import io
import re
import textwrap
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from csv_analyst import read_tables
from ioa import Agent, InvalidInputError, TaskContext
from task_files import TABLES, named_in, upstream_files
from words import fold

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

agent = Agent(
    "chart-maker",
    description="Draws charts as PNG images: bar, line, pie, histogram and scatter plots with labelled axes, from the table of an "
    "earlier result or from a CSV file.",
    skills=["bar, line and pie charts", "data visualisation", "plots and graphs as PNG"],
    examples=[
        "make a bar chart of it",
        "draw a pie chart of total revenue per region",
        "line chart of total sales per month",
        "histogram of price in products.csv",
        "scatter plot of units against revenue",
        "visualise the totals",
        "create a graph of the results",
        "chart these figures",
    ],
    tags=["chart", "plot", "png", "visualisation"],
    may_team_up=False,
)
_TITLE = re.compile(r",?\s*(?:titled|called|with the title)\s+[\"“'](?P<title>[^\"”']+)[\"”']", re.IGNORECASE)
_WISH = re.compile(
    r"\s*(?:(?:please|make|draw|create|a|an|the)\s+)*(?:(?P<kind>bar|line|pie)\s+(?:chart|plot|graph|diagram)"
    r"|(?P<points>histogram|scatter)(?:\s*plot)?|chart|plot|graph|visuali[sz]e|diagram)\b\s*(?:of\s+)?(?P<rest>.*)",
    re.IGNORECASE | re.DOTALL,
)
_EARLIER = r"(?:(?:it|that|this|them|these|those|both)(?: results?| figures?)?|the (?:results?|figures?|totals?))?"
_TIME = r"\d{4}(?:-\d\d(?:-\d\d)?|-Q\d|-W\d\d)?"
_UNITS = {"bar": "values", "pie": "values", "histogram": "rows", "line": "points", "scatter": "points"}
_MOST = {"bar": 60, "pie": 12}
_MOST_SERIES = 10


@dataclass(frozen=True)
class Chart:
    """A table to draw, its labels before its figures; its kind, if that is certain; and of which rows it was made."""

    frame: pd.DataFrame
    title: str
    reading: str
    kind: str = ""


@agent.task
def run(task: str, ctx: TaskContext) -> str:
    """Draw the tables of earlier results, or what the task asks of a file; attach one PNG for each."""
    title = _TITLE.search(task)
    wish = _WISH.fullmatch(_TITLE.sub("", task).strip().rstrip(".?!"))
    if wish is None:
        raise InvalidInputError(
            f"{task.strip()!r} is no chart that is drawn here.",
            hint="Ask for a 'bar chart of', 'line chart of', 'pie chart of', 'histogram of' or 'scatter plot of' something.",
        )
    rest = wish["rest"].strip()
    if wish["points"]:
        charts = [_of_rows(rest, wish["points"].lower(), task, ctx)]
    else:
        charts = _of_results(rest, ctx) or _of_question(rest, task, ctx)
    lines, names = list[str](), list[str]()
    for number, chart in enumerate(charts, 1):
        shown = title["title"] if title else chart.title[:1].upper() + chart.title[1:]
        kind = chart.kind or (wish["kind"] or "").lower() or _fitting_kind(chart.frame)
        name = re.sub(r"[^a-z0-9]+", "-", shown.lower()).strip("-")[:60] or "chart"
        names.append(f"{name}-{number}.png" if f"{name}.png" in names else f"{name}.png")
        ctx.artifact(names[-1], draw(chart.frame, kind, shown), "image/png")
        word = {"histogram": "histogram", "scatter": "scatter plot"}.get(kind, f"{kind} chart")
        lines.append(f"{names[-1]}: a {word} titled '{shown}', {len(chart.frame)} {_UNITS[kind]} ({chart.reading}).")
    return "\n".join(lines)


def _of_results(rest: str, ctx: TaskContext) -> list[Chart]:
    """The tables of earlier results, if the chart is asked of them: by a word such as `it`, by name, or by what they were asked."""
    files = upstream_files(ctx, TABLES)
    if not re.fullmatch(_EARLIER, rest, re.IGNORECASE):
        asked = [result.artifacts for result in ctx.results if _words(rest) in _words(result.task_desc)]
        files = named_in(rest, files) or [file for file in files if any(file in artifacts for artifacts in asked)]
    elif not files:
        raise InvalidInputError("The earlier results hold no table to draw.", hint="Group the figures, as in 'per month'.")
    return [_of_table(file.path, file.name) for file in files]


def _of_table(path: Path, name: str) -> Chart:
    """A chart of a table that is computed already: its last column holds the figures, the others are labels."""
    from answers import used_rows
    from questions import Figure, Key, Question
    from tables import read_table

    table = read_table(path, name)
    *labels, figure = table.columns
    if figure.numbers is None or not labels:
        raise InvalidInputError(
            f"{name} has no labels and figures to draw.", hint="Say which, as in 'bar chart of total COLUMN per COLUMN'."
        )
    cells, reading = used_rows(Question(Figure("values", (figure,)), tuple(map(Key, labels))), table)
    frame = cells[[*(str(at) for at in range(len(labels))), "figure"]].set_axis([str(column) for column in table.columns], axis=1)
    return Chart(frame, f"{figure} by {' and '.join(map(str, labels))}", f"{reading} of {name}")


def _of_question(rest: str, task: str, ctx: TaskContext) -> list[Chart]:
    from answers import answer, where
    from questions import understand

    charts = []
    table, questions = understand(rest, read_tables(task, ctx))
    for question in questions:
        found = answer(question, table)
        if found.frame is None:
            raise InvalidInputError("One figure makes no chart.", hint=f"Group it, as in 'per {table.columns[0]}'.")
        title = f"{question.figure} by {' and '.join(map(str, question.keys))}{where(question)}"
        charts.append(Chart(found.frame, title, found.reading))
    return charts


def _of_rows(rest: str, kind: str, task: str, ctx: TaskContext) -> Chart:
    """A chart of the cells of one or two columns."""
    from answers import used_rows, where
    from questions import understand_plot

    table, *others = read_tables(task, ctx)
    if others:
        raise InvalidInputError("Which of the files to draw is not said.", hint="Name one file.")
    question = understand_plot(rest, table)
    names = [str(column) for column in question.figure.columns]
    if len(names) != (2 if kind == "scatter" else 1):
        raise InvalidInputError(
            "A scatter plot needs two columns, a histogram one.", hint="Say 'scatter plot of COLUMN against COLUMN'."
        )
    cells, reading = used_rows(question, table)
    title = f"distribution of {names[0]}" if kind == "histogram" else f"{names[1]} against {names[0]}"
    return Chart(cells.iloc[:, : len(names)].set_axis(names, axis=1), title + where(question), reading, kind)


def _words(text: str) -> str:
    return " ".join(word for word in re.findall(r"\w+", fold(text)) if word not in ("the", "a", "an"))


def _fitting_kind(frame: pd.DataFrame) -> str:
    """A line for what follows in time, bars for everything else."""
    times = frame.iloc[:, 0].astype(str)
    return "line" if len(frame) > 2 and bool(times.str.fullmatch(_TIME).all()) and times.is_unique else "bar"


def draw(frame: pd.DataFrame, kind: str, title: str) -> bytes:
    """Draw a table as a PNG image: the same for the same table, and without global state, so that threads can draw.

    Raises:
        InvalidInputError: The table cannot be drawn that way.
    """
    from matplotlib.figure import Figure  # it takes longer to load than an agent to start
    from matplotlib.ticker import StrMethodFormatter

    *labels, name = (str(column) for column in frame.columns)
    values = frame[name].astype(float)
    if len(frame) > _MOST.get(kind, len(frame)):
        raise InvalidInputError(
            f"{len(frame)} values are too many for a {kind} chart.", hint="Ask for 'top 10 COLUMN by …', or for a line."
        )
    if kind == "pie" and (len(labels) > 1 or values.lt(0).any() or not values.sum()):
        raise InvalidInputError("A pie is of one grouping and of values that are not negative.", hint="Ask for a bar chart.")
    figure = Figure(
        figsize=(8, max(4.6, 0.24 * len(frame))) if kind == "bar" and len(labels) == 1 else (8, 4.6), dpi=150, layout="constrained"
    )
    figure.suptitle("\n".join(textwrap.wrap(title, 70)), fontsize=13, fontweight="bold")
    axis = figure.subplots()
    axis.set(xlabel=labels[0] if labels else name, ylabel=name if labels else "number of rows")
    number = StrMethodFormatter("{x:,.10g}")
    axis.yaxis.set_major_formatter(number)
    if kind == "pie":
        axis.pie(
            list(values), labels=[str(label) for label in frame[labels[0]]], autopct="%.1f %%", startangle=90, counterclock=False
        )
    elif kind == "scatter":
        axis.scatter(frame[labels[0]], values, s=14, alpha=0.6)
    elif kind == "histogram":
        axis.hist(values, bins="auto" if len(values) < 2_000 else 40, edgecolor="white")
    elif kind == "bar" and len(labels) == 1:
        axis.barh(range(len(frame)), list(values), tick_label=[str(label) for label in frame[labels[0]]])
        axis.invert_yaxis()
        axis.xaxis.set_major_formatter(number)
        axis.set(xlabel=name, ylabel=labels[0])
    else:
        _draw_series(axis, frame.set_index(labels)[name].astype(float), kind)
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", metadata={"Software": None})
    return buffer.getvalue()


def _draw_series(axis: Axes, values: pd.Series, kind: str) -> None:
    """Draw lines, or bars in groups: time runs along the axis, else the label with more values."""
    table = values.unstack(sort=False) if values.index.nlevels == 2 else values.to_frame()
    if values.index.nlevels > 2 or min(table.shape) > _MOST_SERIES:
        raise InvalidInputError("That are too many series for one chart.", hint="Filter the rows, or group by one column.")
    if table.columns.astype(str).str.fullmatch(_TIME).all() or table.shape[0] < table.shape[1]:
        table = table.T
    places, width = range(len(table)), 0.8 / table.shape[1]
    for at, series in enumerate(table.columns):
        if kind == "line":
            axis.plot(places, table[series].to_numpy(), marker="o", markersize=3, label=str(series))
        else:
            axis.bar([place + at * width for place in places], table[series].to_numpy(), width, label=str(series))
    step = -(-len(table) // 14)
    axis.set_xticks(places[::step], [str(label) for label in table.index[::step]], rotation=35)
    axis.set_xlabel(str(table.index.name))
    if table.shape[1] > 1:
        axis.legend(title=str(table.columns.name), fontsize=8, frameon=False)


if __name__ == "__main__":
    agent.run()
