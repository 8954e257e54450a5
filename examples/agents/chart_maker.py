"""Draw charts as PNG images, of what an earlier task computed or of a question about a CSV file.

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
from ioa import Agent, DeclinedError, InvalidInputError, TaskContext
from task_files import TABLES, named_in, upstream_files
from words import fold

if TYPE_CHECKING:
    import pandas as pd

agent = Agent(
    "chart-maker",
    description="Draws charts as PNG images: bar, line, pie, histogram and scatter plots with labelled axes, from the table of an "
    "earlier result or from a CSV file.",
    skills=["bar, line and pie charts", "data visualisation", "plots and graphs as PNG"],
    examples=[
        "make a bar chart of it", "draw a pie chart of total revenue per region", "line chart of total sales per month",
        "histogram of price in products.csv", "scatter plot of units against revenue", "visualise the totals",
        "create a graph of the results", "chart these figures",
    ],
    tags=["chart", "plot", "png", "visualisation"],
    may_team_up=False,
)  # fmt: skip
_TITLE = re.compile(r",?\s*(?:titled|called|with the title)\s+[\"“'](?P<title>[^\"”']+)[\"”']", re.IGNORECASE)
_WISH = re.compile(
    r"\s*(?:(?:please|make|draw|create|show|give|me|us|a|an|the)\s+)*(?:(?P<kind>bar|line|pie)\s+(?:chart|plot|graph|diagram)"
    r"|(?P<points>histogram|scatter)(?:\s*plot)?|chart|plot|graph|visuali[sz]e|diagram)\b\s*(?:of\s+)?(?P<rest>.*)",
    re.IGNORECASE | re.DOTALL,
)
_EARLIER = r"(?:(?:it|that|this|them|these|those|both)(?: results?| figures?)?|the (?:results?|figures?|totals?))?"
_TIMES = {
    "Y": (r"\d{4}", "%Y"), "M": (r"\d{4}-\d\d", "%Y-%m"), "D": (r"\d{4}-\d\d-\d\d", "%Y-%m-%d"), "Q": (r"\d{4}-Q\d", "%Y-Q%q"),
    "W": (r"\d{4}-W\d\d", "%G-W%V"),
}  # fmt: skip
"""How the years, months, days, quarters and weeks of a table are written."""
_UNITS = {"bar": "values", "pie": "values", "histogram": "rows", "line": "points", "scatter": "points"}
_GAPS = 12
_MOST = {"bar": 60, "pie": 12}


@dataclass(frozen=True)
class Chart:
    """A table to draw, labels before figures; of which rows it was made; its kind, if that is certain; whether figures add up."""

    frame: pd.DataFrame
    title: str
    reading: str
    kind: str = ""
    adds_up: bool = True


@agent.task
def run(task: str, ctx: TaskContext) -> str:
    """Draw the tables of earlier results, or what the task asks of a file; attach one PNG for each."""
    title = _TITLE.search(task)
    wish = _WISH.fullmatch(_TITLE.sub("", task).strip().rstrip(".?!"))
    if wish is None:
        refusal = InvalidInputError if re.search(r"chart|plot|graph|histogram|diagram", task, re.IGNORECASE) else DeclinedError
        raise refusal(
            f"{task.strip()!r} is no chart that is drawn here.",
            hint="Ask for a 'bar chart of', 'line chart of', 'pie chart of', 'histogram of' or 'scatter plot of' something.",
        )
    rest, points = wish["rest"].strip(), (wish["points"] or "").lower()
    if not wish["kind"] and re.search(r" (?:against|versus|vs\.?) ", rest):
        points = "scatter"
    charts = [_of_rows(rest, points, task, ctx)] if points else _of_results(rest, ctx) or _of_question(rest, task, ctx)
    lines, names = list[str](), list[str]()
    for number, chart in enumerate(charts, 1):
        shown = title["title"] if title else chart.title[:1].upper() + chart.title[1:]
        kind = chart.kind or (wish["kind"] or "").lower() or _fitting_kind(chart.frame)
        if kind == "pie" and not chart.adds_up:
            raise InvalidInputError(f"{shown}: these are no parts of a whole, which a pie shows.", hint="Ask for a bar chart.")
        name = re.sub(r"[^a-z0-9]+", "-", shown.lower()).strip("-")[:60] or "chart"
        names.append(f"{name}-{number}.png" if f"{name}.png" in names else f"{name}.png")
        ctx.artifact(names[-1], draw(chart.frame, kind, shown), "image/png")
        word = {"histogram": "histogram", "scatter": "scatter plot"}.get(kind, f"{kind} chart")
        gaps = _gaps(chart.frame) if kind == "line" else ""
        lines.append(f"{names[-1]}: a {word} titled '{shown}', {len(chart.frame)} {_UNITS[kind]} ({chart.reading}).{gaps}")
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
    from questions import NO_PARTS, Figure, Key, Question
    from tables import read_table

    table = read_table(path, name)
    if len(table.columns) != 2 or table.columns[1].numbers is None:
        raise InvalidInputError(
            f"{name} is no table of a label and a figure.", hint="Group by one column, as in 'total … per COLUMN'."
        )
    label, figure = table.columns
    cells, reading = used_rows(Question(Figure("values", (figure,)), (Key(label),)), table)
    frame, adds_up = cells[["0", "figure"]].set_axis([str(label), str(figure)], axis=1), not str(figure).startswith(NO_PARTS)
    return Chart(frame, f"{figure} by {label}", f"{reading} of {name}", adds_up=adds_up and not figure.why_rate)


def _of_question(rest: str, task: str, ctx: TaskContext) -> list[Chart]:
    from answers import answer, where
    from questions import NO_PARTS, understand

    charts = []
    table, questions = understand(rest, read_tables(task, ctx))
    for question in questions:
        found = answer(question, table)
        if found.frame is None:
            raise InvalidInputError("One figure makes no chart.", hint=f"Group it, as in 'per {table.columns[0]}'.")
        title = f"{question.figure} by {' and '.join(map(str, question.keys))}{where(question)}"
        adds_up = not str(question.figure).startswith(NO_PARTS) and (
            question.figure.operation in ("sum", "count", "share") or not any(one.why_rate for one in question.figure.columns)
        )
        charts.append(Chart(found.frame, title, found.reading, adds_up=adds_up))
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
    title = f"distribution of {names[0]}" if kind == "histogram" else " and ".join(names)
    return Chart(cells.iloc[:, : len(names)].set_axis(names, axis=1), title + where(question), reading, kind)


def _words(text: str) -> str:
    return " ".join(word for word in re.findall(r"\w+", fold(text)) if word not in ("the", "a", "an"))


def _fitting_kind(frame: pd.DataFrame) -> str:
    """A line for what follows in time, bars for everything else."""
    return "line" if len(frame) > 2 and _periods(frame) is not None else "bar"


def _periods(frame: pd.DataFrame) -> pd.PeriodIndex | None:
    """The times that a table's labels are, if each is one of its own and all are of one length."""
    import pandas as pd

    labels = frame.iloc[:, 0].astype(str)
    for length, (written, form) in _TIMES.items():
        if labels.str.fullmatch(written).all() and labels.is_unique:
            try:
                days = pd.to_datetime(labels + "-1", format=f"{form}-%u") if length == "W" else labels.str.replace("-Q", "Q")
                return pd.PeriodIndex(days, freq=length)
            except ValueError:  # such as a 13th month
                return None
    return None


def _written(periods: pd.PeriodIndex) -> list[str]:
    length = periods.freqstr[0]
    return list((periods if length == "Q" else periods.start_time).strftime(_TIMES[length][1]))


def _gaps(frame: pd.DataFrame) -> str:
    """Say which times between the first and the last have no value, since a line runs on over them."""
    import pandas as pd

    if (periods := _periods(frame)) is None:
        return ""
    missing = pd.period_range(periods.min(), periods.max()).difference(periods)
    some = ", ".join(_written(missing[:_GAPS]))
    more = f" and {len(missing) - _GAPS} more" if len(missing) > _GAPS else ""
    return f" No value: {some}{more}; the line runs on over {'it' if len(missing) == 1 else 'them'}." if len(missing) else ""


def draw(frame: pd.DataFrame, kind: str, title: str) -> bytes:
    """Draw a table as a PNG image: the same for the same table, and without global state, so that threads can draw.

    Raises:
        InvalidInputError: The table cannot be drawn that way.
    """
    import pandas as pd
    from matplotlib import colormaps
    from matplotlib.figure import Figure  # it takes longer to load than an agent to start
    from matplotlib.ticker import StrMethodFormatter

    if len(frame.columns) > 2:
        raise InvalidInputError("A chart has one label for each figure.", hint="Group by one column, and say for which rows.")
    label, name = map(str, frame.columns[[0, -1]])
    values, labels = frame[name].astype(float), [str(one) for one in frame[label]]
    if len(frame) > _MOST.get(kind, len(frame)):
        raise InvalidInputError(
            f"{len(frame)} values are too many for a {kind} chart.", hint="Ask for 'top 10 COLUMN by …', or a line."
        )
    if kind == "pie" and (values.lt(0).any() or not values.sum()):
        raise InvalidInputError("A pie chart needs values that are not negative.", hint="Ask for a bar chart.")
    figure = Figure(figsize=(8, max(4.6, 0.24 * len(frame)) if kind == "bar" else 4.6), dpi=150, layout="constrained")
    figure.suptitle("\n".join(textwrap.wrap(title, 70)), fontsize=13, fontweight="bold")
    axis = figure.subplots()
    axis.set(xlabel=label, ylabel="number of rows" if kind == "histogram" else name)
    match kind:
        case "pie":
            axis.pie(list(values), startangle=90, counterclock=False, colors=colormaps["tab20"].colors)  # type: ignore[attr-defined]
            shares = [f"{one}: {part:.1f} %" for one, part in zip(labels, values / values.sum() * 100, strict=True)]
            axis.legend(shares, loc="center left", bbox_to_anchor=(1, 0.5), frameon=False)
            axis.set(xlabel="", ylabel=name)
        case "scatter":
            axis.scatter(frame[label], values, s=14, alpha=0.6)
        case "histogram":
            axis.hist(values, bins="auto" if len(values) < 2_000 else 40, edgecolor="white")
        case "bar":
            axis.barh(range(len(labels)), list(values), tick_label=labels)
            axis.invert_yaxis()
            axis.xaxis.set_major_formatter(StrMethodFormatter("{x:,.10g}"))
            axis.set(xlabel=name, ylabel=label)
        case _:
            places = list(range(len(labels)))
            if (periods := _periods(frame)) is not None:  # by time: a month without a value has its width, too
                first, last = periods.min(), periods.max()
                values = values.set_axis(periods.asi8 - first.ordinal).sort_index()
                places, labels = list(values.index), _written(pd.period_range(first, last))
            axis.plot(places, list(values), marker="o", markersize=3)
            step = -(-len(labels) // 14)
            axis.set_xticks(range(0, len(labels), step), labels[::step], rotation=35)
            axis.yaxis.set_major_formatter(StrMethodFormatter("{x:,.10g}"))
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", metadata={"Software": None})
    return buffer.getvalue()


if __name__ == "__main__":
    agent.run()
