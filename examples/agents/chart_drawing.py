"""Draw a small table as a chart: PNG bytes, the same for the same table. No global state, so charts can be drawn in threads."""

from __future__ import annotations

import io
import re
from dataclasses import dataclass

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator

from ioa import InvalidInputError

COLORS = ("#2f6f9f", "#e08e45", "#5a9e6f", "#b5526b", "#8268ab", "#8a7356", "#d9b44a", "#5b8f99", "#777777", "#a3c4dc")
_TIME = re.compile(r"\d{4}(-\d\d(-\d\d)?|-Q\d|-W\d\d)?")
_MOST_BARS = 30
_MOST_SLICES = 9


@dataclass(frozen=True)
class Chart:
    """What to draw: a table whose leading columns are labels, and how."""

    frame: pd.DataFrame
    labels: list[str]
    figures: list[str]
    kind: str
    title: str
    note: str = ""


def choose_kind(frame: pd.DataFrame, labels: list[str]) -> str:
    """A line for what follows in time, bars for everything else, points when nothing labels the rows."""
    if not labels:
        return "scatter"
    times = frame[labels[0]].astype(str)
    return "line" if len(frame) > 2 and bool(times.str.fullmatch(_TIME).all()) and times.is_unique else "bar"


def draw(chart: Chart) -> bytes:
    """Draw the chart as a PNG image of 150 dots per inch.

    Raises:
        InvalidInputError: The table cannot be drawn that way.
    """
    count = 1 if chart.kind in ("scatter", "histogram") or _is_grid(chart) else len(chart.figures)
    height = max(4.6, 0.24 * len(chart.frame)) if chart.kind == "bar" and not _is_grid(chart) else 4.6
    figure = Figure(figsize=(8, height * count), dpi=150, layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots(count, 1, squeeze=False)[:, 0]
    figure.suptitle(_wrap(chart.title), fontsize=13, fontweight="bold")
    if chart.kind == "scatter":
        _scatter(axes[0], chart)
    elif chart.kind == "histogram":
        _histogram(axes[0], chart)
    elif _is_grid(chart):
        _grid(axes[0], chart)
    else:
        for axis, name in zip(axes, chart.figures, strict=True):
            _one(axis, chart, name)
    if chart.note:
        figure.supxlabel(chart.note, fontsize=8, color="#666666")
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", metadata={"Software": None})
    return buffer.getvalue()


def _is_grid(chart: Chart) -> bool:
    return len(chart.labels) == 2 and len(chart.figures) == 1 and chart.kind in ("bar", "line")


def _one(axis: Axes, chart: Chart, name: str) -> None:
    labels = chart.frame[chart.labels].astype(str).agg(", ".join, axis=1)
    values = chart.frame[name].astype(float)
    shown = values.notna()
    labels, values = labels[shown], values[shown]
    if chart.kind == "pie":
        _pie(axis, list(labels), list(values), name)
        return
    if chart.kind == "line":
        axis.plot(list(labels), list(values), marker="o", markersize=4, color=COLORS[0])
        _thin_labels(axis, len(labels))
        _frame(axis, ", ".join(chart.labels), name)
        return
    is_wide = len(labels) > 10 or max((len(label) for label in labels), default=0) > 14
    if is_wide:
        axis.barh(list(labels)[::-1], list(values)[::-1], color=COLORS[0])
        _frame(axis, name, ", ".join(chart.labels), along="x")
    else:
        bars = axis.bar(list(labels), list(values), color=COLORS[0])
        axis.bar_label(bars, labels=[_short(value) for value in values], fontsize=8, padding=2)
        _frame(axis, ", ".join(chart.labels), name)


def _pie(axis: Axes, labels: list[str], values: list[float], name: str) -> None:
    if any(value < 0 for value in values) or sum(values) <= 0:
        raise InvalidInputError(
            "A pie chart needs values that are not negative and add up to something.", hint="Ask for a bar chart."
        )
    pairs = sorted(zip(values, labels, strict=True), key=lambda pair: (-pair[0], pair[1]))
    if len(pairs) > _MOST_SLICES:
        rest = pairs[_MOST_SLICES - 1 :]
        pairs = [*pairs[: _MOST_SLICES - 1], (sum(value for value, _ in rest), f"{len(rest)} others")]
    axis.pie(
        [value for value, _ in pairs], labels=[label for _, label in pairs], colors=COLORS[: len(pairs)], autopct="%.1f %%",
        startangle=90, counterclock=False, wedgeprops={"edgecolor": "white"}, textprops={"fontsize": 9},
    )  # fmt: skip
    axis.set_xlabel(name)


def _grid(axis: Axes, chart: Chart) -> None:
    """Draw two labels as groups and series: time runs along the axis, else the label with more values."""
    first, second = chart.labels
    if chart.frame[second].astype(str).str.fullmatch(_TIME).all() or chart.frame[first].nunique() < chart.frame[second].nunique():
        first, second = second, first
    table = chart.frame.pivot_table(index=first, columns=second, values=chart.figures[0], sort=True)
    if table.shape[1] > len(COLORS):
        raise InvalidInputError(
            f"{table.shape[1]} series are too many for one chart.", hint="Filter the rows, or group by one column."
        )
    places = range(len(table))
    width = 0.8 / table.shape[1]
    for index, series in enumerate(table.columns):
        heights = table[series].to_numpy()
        if chart.kind == "line" or len(table) > 14:
            axis.plot(list(places), heights, marker="o", markersize=3, label=str(series), color=COLORS[index])
        else:
            offset = (index - (table.shape[1] - 1) / 2) * width
            axis.bar([place + offset for place in places], heights, width, label=str(series), color=COLORS[index])
    axis.set_xticks(list(places), [str(label) for label in table.index])
    _thin_labels(axis, len(table))
    axis.legend(title=second, fontsize=8, frameon=False)
    _frame(axis, first, chart.figures[0])


def _scatter(axis: Axes, chart: Chart) -> None:
    if len(chart.figures) < 2:
        raise InvalidInputError(
            "A scatter plot needs two columns of numbers.", hint="Name them, as in 'scatter plot of price and units'."
        )
    left, right = chart.figures[:2]
    axis.scatter(chart.frame[left], chart.frame[right], s=14, alpha=0.6, color=COLORS[0], edgecolors="none")
    _frame(axis, left, right)


def _histogram(axis: Axes, chart: Chart) -> None:
    axis.hist(
        chart.frame[chart.figures[0]].dropna(), bins="auto" if len(chart.frame) < 2_000 else 40, color=COLORS[0], edgecolor="white"
    )
    _frame(axis, chart.figures[0], "number of rows")


def _frame(axis: Axes, x: str, y: str, along: str = "y") -> None:
    axis.set_xlabel(x)
    axis.set_ylabel(y)
    axis.spines[["top", "right"]].set_visible(False)
    axis.grid(axis="y" if along == "y" else "x", alpha=0.25)
    axis.set_axisbelow(True)
    values = axis.yaxis if along == "y" else axis.xaxis
    values.set_major_formatter(FuncFormatter(lambda value, _: _short(value)))


def _thin_labels(axis: Axes, count: int) -> None:
    if count > 14:
        axis.xaxis.set_major_locator(MaxNLocator(nbins=12, integer=True))
    if count > 6:
        axis.tick_params(axis="x", rotation=35)


def _short(value: float) -> str:
    if abs(value) >= 1e6:
        return f"{value / 1e6:.4g} M"
    return f"{value:,.0f}" if abs(value) >= 1000 or float(value).is_integer() else f"{value:.4g}"


def _wrap(title: str) -> str:
    words, lines = title.split(), [""]
    for word in words:
        lines[-1:] = [f"{lines[-1]} {word}".strip()] if len(lines[-1]) + len(word) < 70 else [lines[-1], word]
    return "\n".join(lines)


def cut(frame: pd.DataFrame, figure: str) -> tuple[pd.DataFrame, str]:
    """Keep the rows with the largest figures when there are too many for one chart, and say so."""
    if len(frame) <= _MOST_BARS:
        return frame, ""
    return frame.nlargest(_MOST_BARS, figure), f"the {_MOST_BARS} largest of {len(frame)}"
