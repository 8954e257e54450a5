"""Draw bar and line charts as PNG images, of what an earlier task computed or of a question (docs/questions.md) about a table."""

from __future__ import annotations

import io
import re
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING

from csv_analyst import the_table
from ioa import Agent, DeclinedError, InvalidInputError, TaskContext
from ioa.files import of_results
from request import TABLES, of_length, slug

if TYPE_CHECKING:
    import pandas as pd

agent = Agent(
    "chart-maker",
    description="Draws charts as PNG images: bar charts and line charts with labelled axes, from the table of an earlier result or "
    "from a CSV file.", skills=["bar charts and line charts", "data visualisation", "plots and graphs as PNG"], examples=[
        "make a bar chart of it", "draw a bar chart of total revenue per region", "line chart of total sales per month",
        "plot the average price per product in products.csv", "visualise the totals", "create a graph of the results",
    ], tags=["chart", "plot", "png", "visualisation"], declines=True, may_team_up=False,
)  # fmt: skip
_CHART = "chart|plot|graph|visualise|visualize"
_WISH = re.compile(
    rf"(?is)\s*(?:(?:please|make|draw|create|show|give|me|us|a|an|the)\s+)*(?:(?P<kind>bar|line)\s+)?(?:{_CHART})\b"
    r"\s*(?:of\s+)?(?P<rest>.*)"
)
_EARLIER = r"(?:(?:it|that|this|them|these|those|both|the(?: first| second| third)?)(?: one| results?| figures?| totals?)?)?"
_TIME, _MOST_BARS = r"\d{4}(?:-\d\d(?:-\d\d)?|-Q[1-4])?", 60


@agent.task(of_one_user=1)
def run(task: str, ctx: TaskContext) -> str:
    """Draw the table of an earlier result, or what the task asks of a file, and attach it as a PNG."""
    wish = _WISH.fullmatch(of_length(task).strip().rstrip(".?!"))
    if wish is None:
        refusal = InvalidInputError if re.search(rf"\b(?:{_CHART}|draw)\b", task, re.IGNORECASE) else DeclinedError
        hint = "Say 'bar chart of' or 'line chart of', and one question with one KEY, as in 'total COLUMN per COLUMN', or 'it'."
        raise refusal(f"{task.strip()!r} is no chart that is drawn here.", hint=hint)
    rest = wish["rest"].strip()
    earlier = bool(re.fullmatch(_EARLIER, rest, re.IGNORECASE) and ctx.results)
    tables = [file.path for file in of_results(ctx, TABLES)] if earlier else [the_table(task, ctx)]
    if len(tables) != 1:
        hint = "Group the figures, as in 'per COLUMN', and ask for each chart behind its figures: a chart is no table."
        said = f"A chart is of one table, and the earlier results hold {len(tables) or 'no table to draw'}."
        raise InvalidInputError(said, hint=hint)
    chart = tables[0], None if earlier else rest, (wish["kind"] or "").lower()
    png, title, said = chart_of_file(*chart)
    name = f"{slug(title) or 'chart'}.png"
    ctx.artifact(name, png, "image/png")
    return f"{name}: {said}"


def chart_of_file(path: Path, question: str | None, kind: str) -> tuple[bytes, str, str]:
    """Draw what a question asks of a file, or a table that is computed already: the PNG image, its title, and what it shows."""
    from answers import answer, used_rows
    from questions import Figure, Key, Question, Reader
    from tables import read_table

    table = read_table(path)
    if question is None:
        if len(table.columns) != 2 or table.columns[1].numbers is None:
            hint = "Group by one column, as in 'total … per COLUMN'."
            raise InvalidInputError(f"{path.name} is no table of a label and a figure.", hint=hint)
        label, figure = table.columns
        cells, reading = used_rows(Question(Figure("sum", figure), (Key(label),)), table)
        frame, title = cells[["0", "figure"]].set_axis([str(label), str(figure)], axis=1), f"{figure} by {label}"
    else:
        found = answer(asked := Reader(question, table).question(), table)
        if found.frame is None or len(asked.keys) != 1 or found.frame.dtypes.iloc[1].kind == "M":
            raise InvalidInputError("A chart has one label for each number.", hint="Group by one column, as in 'per COLUMN'.")
        frame, title, reading = found.frame, found.title, found.reading
    title = title[:1].upper() + title[1:]
    key, name = map(str, frame.columns)
    values = frame.set_index(frame[key].astype(str).rename(key))[name].astype(float)
    times = _times(values.index)
    kind = kind or ("line" if times is not None and len(values) > 2 else "bar")
    if kind == "line" and times is None:
        raise InvalidInputError(f"A line follows dates, which {key} does not hold.", hint="Say 'bar chart of'.")
    times = times if kind == "line" else None
    if times is not None and (gaps := max(times.asi8) - min(times.asi8) + 1 - len(times)):
        reading += f"; {gaps} dates between have no value"
    return draw(values, times, title), title, f"a {kind} chart titled '{title}', {len(values)} values of {path.name} ({reading})."


def _times(labels: pd.Index) -> pd.PeriodIndex | None:
    """The times that labels are, if each is one of its own and all are of one length."""
    import pandas as pd

    if not labels.str.fullmatch(_TIME).all() or not labels.is_unique:
        return None
    try:
        return pd.PeriodIndex([pd.Period(label.replace("-Q", "Q")) for label in labels])
    except ValueError:  # such as a 13th month, or months beside years
        return None


def draw(values: pd.Series, times: pd.PeriodIndex | None, title: str) -> bytes:
    """Draw figures as a PNG image, bars by their labels or a line over times: the same for the same figures."""
    from matplotlib import rc_context  # it takes longer to load than an agent to start
    from matplotlib.figure import Figure
    from matplotlib.font_manager import findfont, get_font
    from matplotlib.ticker import StrMethodFormatter

    drawn = get_font(findfont("DejaVu Sans")).get_charmap()
    if lacking := [sign for sign in "".join([title, str(values.name), *values.index]) if ord(sign) not in drawn]:
        said = f"A label has a sign that is not drawn here: {lacking[0]!r}."
        raise InvalidInputError(said, hint="Ask for the figures instead of the chart.")
    if times is None and len(values) > _MOST_BARS:
        raise InvalidInputError(f"{len(values)} values are too many for bars.", hint="Ask for 'top 10 COLUMN by …', or a line.")
    with rc_context({"text.parse_math": False}):  # a `$` is one
        figure = Figure(figsize=(8, 4.6 if times is not None else max(4.6, 0.24 * len(values))), dpi=150, layout="constrained")
        figure.suptitle("\n".join(textwrap.wrap(title, 70)), fontsize=13, fontweight="bold")
        axis = figure.subplots()
        figures, labels = (axis.xaxis, axis.yaxis) if times is None else (axis.yaxis, axis.xaxis)
        if times is None:
            values.plot.barh(ax=axis, width=0.8)
            axis.invert_yaxis()
        else:  # a month without a value has its width, too
            values.set_axis(times).sort_index().plot.line(ax=axis, marker="o", markersize=3)
        figures.set_major_formatter(StrMethodFormatter("{x:,.10g}"))
        figures.set_label_text("\n".join(textwrap.wrap(str(values.name), 70)))
        labels.set_label_text(str(values.index.name))
        buffer = io.BytesIO()
        figure.savefig(buffer, format="png", metadata={"Software": None})
    return buffer.getvalue()
