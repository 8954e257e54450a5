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

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from csv_analyst import read_tables
from ioa import Agent, InputFile, InvalidInputError, TaskContext
from task_files import named_in, upstream_files
from words import fold

if TYPE_CHECKING:
    import pandas as pd

    from chart_drawing import Chart
    from questions import Question
    from tables import Table

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
    r"\s*(?:(?:please|make|draw|create|a|an|the)\s+)*"
    r"(?:(?P<kind>bar|line|pie)\s+(?:chart|plot|graph|diagram)|(?P<points>histogram|scatter\s*plot)"
    r"|chart|plot|graph|visuali[sz]e|diagram)\b\s*(?:of\s+)?(?P<rest>.*)",
    re.IGNORECASE | re.DOTALL,
)
_EARLIER = re.compile(
    r"(?:(?:it|that|this|them|these|those|both)(?: results?| figures?)?|the (?:results?|figures?|totals?))?", re.IGNORECASE
)


@agent.task
def run(task: str, ctx: TaskContext) -> str:
    """Draw the tables of earlier results, or what the task asks of a file; attach one PNG for each."""
    from chart_drawing import draw  # matplotlib and pandas take longer to load than an agent to start

    charts = _charts(task, ctx)
    lines: list[str] = []
    for number, chart in enumerate(charts, 1):
        name = re.sub(r"[^a-z0-9]+", "-", chart.title.lower()).strip("-")[:60] or "chart"
        taken = any(line.startswith(f"{name}.png") for line in lines)
        file = f"{name}-{number}.png" if taken else f"{name}.png"
        ctx.artifact(file, draw(chart), "image/png")
        word = {"histogram": "histogram", "scatter": "scatter plot"}.get(chart.kind, f"{chart.kind} chart")
        unit = {"histogram": "rows", "line": "points", "scatter": "points"}.get(chart.kind, "values")
        lines.append(f"{file}: a {word} titled '{chart.title}', {len(chart.frame)} {unit}.")
    return "\n".join(lines)


def _charts(task: str, ctx: TaskContext) -> list[Chart]:
    from questions import understand_plot

    title = _TITLE.search(task)
    wish = _WISH.fullmatch(_TITLE.sub("", task).strip().rstrip(".?!"))
    if wish is None:
        raise InvalidInputError(
            f"{task.strip()!r} is no chart that is drawn here.",
            hint="Ask for a 'bar chart of', 'line chart of', 'pie chart of', 'histogram of' or 'scatter plot of' something.",
        )
    rest, kind = wish["rest"].strip(), (wish["kind"] or "").lower()
    if wish["points"]:
        kind = wish["points"].lower().split()[0].removesuffix("plot")
        charts = [_points(understand_plot(rest, table), table, kind) for table in _only(read_tables(task, ctx))]
    elif earlier := _earlier(rest, ctx):
        charts = [_of_result(file, kind) for file in earlier]
    else:
        charts = _of_question(rest, kind, task, ctx)
    return [replace(chart, title=title["title"]) if title else chart for chart in charts]


def _earlier(rest: str, ctx: TaskContext) -> list[InputFile]:
    """The tables of earlier results, if the chart is asked of them: by a word such as `it`, by name, or by what they were asked."""
    from tables import SUFFIXES

    files = upstream_files(ctx, SUFFIXES)
    if _EARLIER.fullmatch(rest):
        if not files:
            raise InvalidInputError("The earlier results hold no table to draw.", hint="Group the figures, as in 'per month'.")
        return files
    asked = [result.artifacts for result in ctx.results if _words(rest) and _words(rest) in _words(result.task_desc)]
    return named_in(rest, files) or [file for file in files if any(file in artifacts for artifacts in asked)]


def _words(text: str) -> str:
    return " ".join(word for word in re.findall(r"\w+", fold(text)) if word not in ("the", "a", "an"))


def _only(tables: list[Table]) -> list[Table]:
    if len(tables) > 1:
        raise InvalidInputError(f"Which of {', '.join(table.name for table in tables)} to draw is not said.", hint="Name one file.")
    return tables


def _of_result(file: InputFile, kind: str) -> Chart:
    """A chart of a table that is computed already: its last column holds the figures, the others are labels."""
    from tables import read_table

    table = read_table(file.path, file.name)
    last = len(table.names) - 1
    figures = [last] if last > 0 else []
    frame = table.frame.set_axis(list(table.names), axis=1)
    if not figures or not table.holds_numbers(last):
        raise InvalidInputError(f"{table.name} has no figures with labels to draw.", hint=f"Its columns: {', '.join(table.names)}.")
    frame[table.names[last]] = table.numbers(last).values
    return _chart(frame, kind)


def _of_question(rest: str, kind: str, task: str, ctx: TaskContext) -> list[Chart]:
    from answers import answer
    from questions import understand

    charts = []
    for table, question in understand(rest, read_tables(task, ctx)):
        found = answer(question, table)
        if found.frame is None:
            raise InvalidInputError("One figure makes no chart.", hint=f"Group it, as in 'per {table.names[0]}'.")
        charts.append(_chart(found.frame, kind, "".join(found.text.split(" where ")[1:2]).split(" (")[0]))
    return charts


def _chart(frame: pd.DataFrame, kind: str, condition: str = "") -> Chart:
    from chart_drawing import Chart, choose_kind, cut

    labels, figure = [str(name) for name in frame.columns[:-1]], str(frame.columns[-1])
    kind, note = kind or choose_kind(frame, labels), ""
    if kind == "bar" and len(labels) == 1:
        frame, note = cut(frame, figure)
    title = f"{figure} by {' and '.join(labels)}{f' ({condition})' if condition else ''}"
    return Chart(frame, labels, [figure], kind, title[:1].upper() + title[1:], note)


def _points(question: Question, table: Table, kind: str) -> Chart:
    import pandas as pd

    from answers import kept
    from chart_drawing import Chart

    wanted = 2 if kind == "scatter" else 1
    if len(question.plots) != wanted:
        raise InvalidInputError(
            f"A {kind} needs {'two columns' if wanted == 2 else 'one column'}.",
            hint="Say 'scatter plot of COLUMN against COLUMN', or 'histogram of COLUMN'.",
        )
    names = [table.names[column] for column in question.plots]
    chosen = kept(question, table)
    frame = pd.DataFrame({name: table.numbers(column).values[chosen] for name, column in zip(names, question.plots, strict=True)})
    conditions = " and ".join(one.written(table) for one in question.conditions)
    title = f"Distribution of {names[0]}" if kind == "histogram" else " and ".join(names)
    return Chart(frame, [], names, kind, title[:1].upper() + title[1:] + (f" ({conditions})" if conditions else ""))


if __name__ == "__main__":
    agent.run()
