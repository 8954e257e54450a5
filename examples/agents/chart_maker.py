"""Draw the table of an earlier result as a bar or line chart, a PNG image."""

import io
import re
from collections.abc import Sequence

from ioa import Agent, DeclinedError, InvalidInputError, TaskContext
from request import named_file
from tables import read_table

agent = Agent(
    "chart-maker", description="Draws the table of an earlier result as a bar chart or a line chart, a PNG image.",
    skills=["bar charts and line charts", "plots as PNG"], examples=[
        "bar chart of #1", "line chart of #1", "1. sum of NUMBER by COLUMN in FILE.csv\n2. bar chart of #1", "bar chart of #2",
        "line chart of #3", "draw a chart",
    ], tags=["chart", "plot", "png"], declines=True, may_team_up=False,
)  # fmt: skip
_FORM = re.compile(r"(?P<kind>bar|line) chart of (?P<result>#\d+)", re.IGNORECASE)
_MAX_BARS = 60


@agent.task
def run(task: str, ctx: TaskContext) -> str:
    """Draw a chart of a result with a table of two columns, a label and a number."""
    asked = _FORM.fullmatch(task.strip())
    if asked is None:
        hint = "Write 'bar chart of #1' or 'line chart of #1'; #1 is the result of item 1 of the list."
        raise DeclinedError("This is not a chart of a result.", hint=hint)
    file, kind = named_file(asked["result"], ctx, (".csv",)), asked["kind"].lower()
    table = read_table(file)
    if len(table.columns) != 2 or len(table.rows) > _MAX_BARS:
        raise InvalidInputError(f"A chart has one label and one number for each of at most {_MAX_BARS} rows; {file.name} has not.")
    labels, values = [row[0] for row in table.rows], [float(table.number(row, 1) or 0) for row in table.rows]
    title, name = f"{table.columns[1]} by {table.columns[0]}", f"{kind}-chart-of-{file.name.removesuffix('.csv')}.png"
    ctx.artifact(name, draw(kind, labels, values, table.columns), "image/png")
    return f"{name}: a {kind} chart of {title}, {len(values)} values."


def draw(kind: str, labels: Sequence[str], values: Sequence[float], columns: Sequence[str]) -> bytes:
    """Return a PNG image, the same for the same values."""
    from matplotlib import rc_context  # it takes longer to import than an agent takes to start
    from matplotlib.figure import Figure

    with rc_context({"text.parse_math": False}):
        figure = Figure(figsize=(8, max(4.6, 0.24 * len(values) if kind == "bar" else 0)), dpi=150, layout="constrained")
        axis = figure.subplots()
        axis.set_title(f"{columns[1]} by {columns[0]}"[:100], fontweight="bold")
        if kind == "bar":
            axis.barh(labels, values)
            axis.invert_yaxis()
        else:
            axis.plot(labels, values, marker="o", markersize=3)
            axis.tick_params("x", rotation=90 if len(labels) > 6 else 0)
        (axis.set_xlabel if kind == "bar" else axis.set_ylabel)(columns[1])
        (axis.set_ylabel if kind == "bar" else axis.set_xlabel)(columns[0])
        buffer = io.BytesIO()
        figure.savefig(buffer, format="png", metadata={"Software": None})
    return buffer.getvalue()
