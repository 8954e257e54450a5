"""Draw charts as PNG images, from what an earlier task computed or directly from a CSV file.

    make a bar chart of it
    pie chart of revenue per region in sales.csv
    plot units by month as a line
    histogram of unit_price
    scatter plot of units and revenue for electronics

Without a word for the kind of chart, the data decides: what follows in time becomes a line, everything else bars.
"""

from __future__ import annotations

import re

import pandas as pd

from answer_parts import filtered
from chart_drawing import Chart, choose_kind, cut, draw
from csv_analyst import read_tables
from ioa import Agent
from ioa.agent.sdk import TaskContext
from ioa.errors import InvalidInputError
from table_answer import answer
from table_query import Query
from table_question import understand
from table_reading import SUFFIXES, Table, read_table
from task_files import named_in, upstream_files, with_suffix

agent = Agent(
    "chart-maker",
    description="Draws charts as PNG images: bar, line, pie, histogram and scatter plots with labelled axes, from the table of an "
    "earlier result or from a CSV file.",
    skills=["bar, line and pie charts", "data visualisation", "plots and graphs as PNG"],
    examples=[
        "make a bar chart of it",
        "draw a pie chart of revenue per region",
        "plot monthly sales as a line chart",
        "a histogram of the prices in products.csv",
        "scatter plot of units against revenue",
        "visualise the totals",
        "create a graph of the results",
        "chart these figures",
    ],
    tags=["chart", "plot", "png", "visualisation"],
    may_team_up=False,
)
_KINDS = (
    ("histogram", r"histograms?|distributions?"),
    ("scatter", r"scatter\w*|against"),
    ("pie", r"pies?|donuts?|doughnuts?"),
    ("line", r"lines?|curves?|time series"),
    ("bar", r"bars?|columns? charts?"),
)
_NOT_DRAWN = re.compile(
    r"\b(box ?-?plots?|heat ?-?maps?|radar|area charts?|tree ?-?maps?|bubble|candlestick|sankey|violin|map of)\b", re.IGNORECASE
)
_TITLE = re.compile(r"(?:titled?|called|named|with the title)\s+[\"“'](?P<title>[^\"”']+)[\"”']", re.IGNORECASE)
_CHART_WORDS = re.compile(
    r"\b(?:histograms?|distributions?|scatter\s*plots?|scatter|against|pies?|donuts?|doughnuts?|lines?|curves?|bars?|charts?|plots?|plotting"
    r"|graphs?|diagrams?|images?|png|pictures?|draw|create|visuali[sz]e|as a|as an)\b",
    re.IGNORECASE,
)


@agent.task
def run(task: str, ctx: TaskContext) -> str:
    """Draw the tables of earlier results, or what the task asks of a file; attach one PNG for each."""
    charts = _charts(task, ctx)
    names: list[str] = []
    for chart in charts:
        name = _file_name(chart.title, names)
        names.append(name)
        ctx.artifact(name, draw(chart), "image/png")
    lines = [
        f"{name}: a {_word(chart.kind)} titled '{chart.title}', {_size(chart)}." for name, chart in zip(names, charts, strict=True)
    ]
    return "\n".join(lines)


def _charts(task: str, ctx: TaskContext) -> list[Chart]:
    match = _TITLE.search(task)
    wish = _TITLE.sub(" ", task)
    if other := _NOT_DRAWN.search(wish):
        raise InvalidInputError(
            f"A {other[1]} is not drawn here.", hint="Ask for a bar, line or pie chart, a histogram or a scatter plot."
        )
    kind = next((kind for kind, words in _KINDS if re.search(rf"\b(?:{words})\b", wish, re.IGNORECASE)), "")
    upstream = upstream_files(ctx, SUFFIXES)
    inputs = with_suffix(named_in(task, ctx.inputs), SUFFIXES)
    if upstream and not (inputs and kind in ("histogram", "scatter")):
        charts = [
            _of_result(read_table(file.path, file.name, keep_dates_as_text=True), kind)
            for file in named_in(task, upstream) or upstream
        ]
    else:
        charts = _of_tables(wish, kind, ctx)
    return [Chart(**{**vars(chart), "title": match["title"]}) if match else chart for chart in charts]


def _of_result(table: Table, kind: str) -> Chart:
    """A chart of a table that is computed already: its text columns are labels, its number columns figures."""
    figures = [name for name in table.numbers if name not in ("change", "values")]
    if len(figures) > 1:
        figures = [name for name in figures if name != "percent"][: 1 if kind == "pie" else None]
    labels = [name for name in table.frame.columns if name not in table.numbers][:2]
    if not figures:
        raise InvalidInputError(f"{table.name} has no numbers to draw.", hint=f"Its columns: {', '.join(table.frame.columns)}.")
    if not labels and len(table.frame.columns) > 1 and kind not in ("scatter", "histogram"):
        labels, figures = [str(table.frame.columns[0])], [name for name in figures if name != table.frame.columns[0]]
    figures = figures[:3]
    return _chart(table.frame, labels, figures, kind, f"{_and(figures)} by {_and(labels)}" if labels else _and(figures))


def _of_tables(task: str, kind: str, ctx: TaskContext) -> list[Chart]:
    tables = read_tables(task, ctx)
    question = task
    for file in ctx.inputs:
        question = question.replace(file.name, " ")
    question = re.sub(r"\b(?:against|and)\b" if kind == "scatter" else r"(?!x)x", "and", question)
    question = _CHART_WORDS.sub(lambda match: "versus" if match[0] == "against" else " ", question)
    errors = []
    for table in tables:
        try:
            return [_of_table(question, kind, table)]
        except InvalidInputError as error:
            errors.append(error)
    if ctx.results:
        raise InvalidInputError(
            "The earlier results hold no table to draw.", hint=f"Group the figures, as in 'per month'. {errors[0]}"
        )
    raise errors[0]


def _of_table(question: str, kind: str, table: Table) -> Chart:
    query = understand(question, table)
    condition = f" ({' and '.join(map(str, query.filters))})" if query.filters else ""
    if kind in ("histogram", "scatter"):
        columns = list(dict.fromkeys(name for name in [*query.columns, *_measured(query)] if name in table.numbers))
        frame = filtered(table, query.filters)
        title = f"Distribution of {columns[0]}" if kind == "histogram" and columns else " and ".join(columns[:2])
        return _chart(frame, [], columns[: 1 if kind == "histogram" else 2], kind, title + condition)
    if not query.keys and query.kind == "figures":
        raise InvalidInputError(
            "It is not clear what to draw along the axis.", hint=f"Say 'per' one of {', '.join(table.frame.columns)}."
        )
    found = answer(query, table)
    if found.frame is None:
        raise InvalidInputError(
            "The request has one figure as its answer, which makes no chart.", hint="Group it, as in 'per month'."
        )
    labels = [key.name for key in query.keys] or [str(found.frame.columns[0])]
    wanted = ["percent"] if query.share else [str(name) for name in found.frame.columns[len(labels) :]]
    title = f"{_and([str(one) for one in query.measures] or wanted)} by {_and([str(key) for key in query.keys] or labels)}"
    return _chart(found.frame, labels, wanted, kind, title + condition)


def _measured(query: Query) -> list[str]:
    return [measure.column for measure in query.measures if measure.column]


def _chart(frame: pd.DataFrame, labels: list[str], figures: list[str], kind: str, title: str) -> Chart:
    if not figures or frame.empty:
        raise InvalidInputError("There are no numbers to draw.", hint=f"The columns are: {', '.join(map(str, frame.columns))}.")
    kind = kind or choose_kind(frame, labels)
    note = ""
    if kind == "bar" and len(labels) == 1:
        frame, note = cut(frame, figures[0])
    return Chart(frame, labels, figures[:4], kind, title[:1].upper() + title[1:], note)


def _and(names: list[str]) -> str:
    return " and ".join(names)


def _word(kind: str) -> str:
    return kind if kind == "histogram" else "scatter plot" if kind == "scatter" else f"{kind} chart"


def _size(chart: Chart) -> str:
    return (
        f"{len(chart.frame)} {'points' if chart.kind in ('line', 'scatter') else 'rows' if chart.kind == 'histogram' else 'values'}"
    )


def _file_name(title: str, taken: list[str]) -> str:
    name = re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-")[:60] or "chart"
    return f"{name}-{len(taken) + 1}.png" if f"{name}.png" in taken else f"{name}.png"


if __name__ == "__main__":
    agent.run()
