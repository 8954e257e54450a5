"""The chart maker: valid PNG files of the right kind, from results and from files."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure

import chart_maker
import csv_analyst
from chart_maker import agent
from ioa.errors import InvalidInputError
from ioa.testing.task_context import upstream
from request import slug
from tests.unit.examples.agent_run import Run


def size_of(png: bytes) -> tuple[int, int]:
    """Read width and height from a PNG file's header."""
    assert png.startswith(b"\x89PNG\r\n\x1a\n")
    width, height = struct.unpack(">II", png[16:24])
    return int(width), int(height)


@pytest.mark.parametrize(
    ("earlier", "task", "said"),
    [
        (
            "total revenue per region",
            "make a bar chart of it",
            "a bar chart titled 'Sum of revenue by region', 4 values of sum-of-revenue-by-region.csv (4 of 4 rows).",
        ),
        (
            "total revenue per month",
            "visualise it",
            (
                "a line chart titled 'Sum of revenue by month of date', 12 values "
                "of sum-of-revenue-by-month-of-date.csv (12 of 12 rows)."
            ),
        ),
    ],
)
def test_of_a_result(earlier: str, task: str, said: str, run: Run, data: Path) -> None:
    """`it` is the table of the earlier task; the kind follows the words, else the data."""
    before = run(csv_analyst.agent, earlier, [data / "sales.csv"])
    done = run(agent, task, results=[upstream(earlier, before.text, *before.paths)])
    assert done.text.split(": ", 1)[1] == said
    assert [size_of(png)[0] for png in done.files.values()] == [1200]


@pytest.mark.parametrize(
    ("task", "said"),
    [
        (
            "bar chart of total revenue per region in sales.csv",
            "a bar chart titled 'Sum of revenue by region', 4 values of sales.csv (500 of 500 rows).",
        ),
        (
            "show me a line chart of total revenue per month where region is not West",
            (
                "a line chart titled 'Sum of revenue (where region is not West) by month of date', "
                "12 values of sales.csv (368 of 500 rows)."
            ),
        ),
        (
            "plot the number of rows per quarter",
            "a line chart titled 'Number of rows by quarter of date', 4 values of sales.csv (500 of 500 rows).",
        ),
    ],
)
def test_of_a_file(task: str, said: str, run: Run, data: Path) -> None:
    """Without an earlier result the chart is computed from the file."""
    done = run(agent, task, [data / "sales.csv"])
    assert done.text.split(": ", 1)[1] == said
    assert all(min(size_of(png)) > 500 for png in done.files.values())


def test_months_of_a_result_stay_months(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A line through twelve months has twelve places."""
    drawn: list[pd.PeriodIndex | None] = []

    def draw(_values: pd.Series, times: pd.PeriodIndex | None, _title: str) -> bytes:
        drawn.append(times)
        return b""

    monkeypatch.setattr(chart_maker, "draw", draw)
    table = tmp_path / "t.csv"
    table.write_text("month of date,sum of n\n2024-01,3\n2024-02,4\n2024-03,5\n")
    chart_maker.chart_of_file(table, None, "line")
    assert drawn[0] is not None
    assert [*map(str, drawn[0])] == ["2024-01", "2024-02", "2024-03"]


def test_a_month_without_a_value_has_its_width(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Values are marked, and it is told how many dates between have none: of days, every second one may."""
    drawn: list[list[float]] = []
    path = tmp_path / "t.csv"
    path.write_text("day,n\n2024-01-01,1\n2024-01-03,2\n2024-01-05,4\n")
    assert (
        "3 values of t.csv (3 of 3 rows; 2 dates between have no value)" in run(agent, "line chart of total n per day", [path]).text
    )

    def see(figure: Figure, *_to: object, **_how: object) -> None:
        line = figure.axes[0].lines[0]
        drawn.extend([np.diff(line.get_xdata(orig=False)).tolist(), np.asarray(line.get_ydata()).tolist()])

    monkeypatch.setattr(Figure, "savefig", see)
    months = ["2024-07", "2024-05", "2024-09"]
    chart_maker.draw(pd.Series([2, 1, 3], months, name="guests"), pd.PeriodIndex(months, freq="M"), "Guests")
    assert drawn == [[2, 2], [1, 2, 3]]


def test_both(run: Run, data: Path) -> None:
    """A chart is of one table."""
    parts = [
        run(csv_analyst.agent, task, [data / "sales.csv"]) for task in ("total revenue per region", "average units per product")
    ]
    with pytest.raises(InvalidInputError, match="A chart is of one table, and the earlier results hold 2"):
        run(agent, "plot both", results=[upstream("earlier", part.text, *part.paths) for part in parts])


@pytest.mark.parametrize(
    ("earlier", "name"),
    [
        ("top 2 regions by total units", "sum of units (the highest 2 of 4) by region"),
        ("how many rows per region where units < 3", "number of rows (where units < 3) by region"),
        (
            "bottom 1 region by maximum price where price above 4",
            "maximum of price (the lowest 1 of 2, 1 more like the last where price > 4) by region",
        ),
    ],
)
def test_what_was_chosen_is_said_wherever_a_figure_goes(earlier: str, name: str, run: Run, tmp_path: Path) -> None:
    """The condition, and how many of how many, stand in the table's header and name, and in the titles of charts of either."""
    path = tmp_path / "t.csv"
    path.write_text("region,units,price\nN,1,5\nS,2,5\nE,3,4\nW,9,4\n")
    before = run(csv_analyst.agent, earlier, [path])
    of_it = run(agent, "bar chart of it", results=[upstream(earlier, before.text, *before.paths)])
    (table,) = before.files.values()
    assert table.decode().splitlines()[0].replace('"', "") == f"region,{name.removesuffix(' by region')}"
    for chart in (of_it, run(agent, f"bar chart of {earlier}", [path])):
        assert f"titled '{name[:1].upper()}{name[1:]}', " in chart.text
    assert [Path(file).stem for file in (*before.files, *of_it.files)] == [slug(name)] * 2


def test_signs_are_words_in_names_of_files() -> None:
    """A condition does not turn into another one where a name can have no signs."""
    assert slug("rows where n <= 3 and m > 4") == "rows-where-n-at-most-3-and-m-above-4"


def test_same_table_same_bytes(run: Run, data: Path) -> None:
    """The same table gives the same image, byte for byte."""
    first, second = (run(agent, "bar chart of total revenue per region", [data / "sales.csv"]).files for _ in range(2))
    assert first == second


@pytest.mark.parametrize(
    ("task", "said"),
    [
        ("bar chart of total profit per region", "'profit per region' is not understood"),
        ("a chart of total revenue", "Group by one column"),
        ("bar chart of latest date per region", "Group by one column"),
        ("scatter plot of units", "no chart that is drawn here"),
        ("pie chart of total revenue per region", "no chart that is drawn here"),
        ("bar chart of total revenue per day", "279 values are too many"),
        ("bar chart of total revenue per region and month", "Group by one column"),
        ("boxplot of total revenue per region", "no chart that is drawn here. Say 'bar chart of' or 'line chart of'"),
        ("list club and won where drawn is 4", "no chart that is drawn here. Say 'bar chart of' or 'line chart of'"),
        ("bar chart of total revenue per region in red", "'red' is not understood"),
    ],
)
def test_refusals(task: str, said: str, run: Run, data: Path) -> None:
    """A chart that cannot be drawn is an error that says what is missing."""
    with pytest.raises(InvalidInputError) as error:
        run(agent, task, [data / "sales.csv"])
    assert said in str(error.value)


def test_result_without_table(run: Run, data: Path) -> None:
    """An earlier result of one figure makes no chart, and the error says so."""
    with pytest.raises(InvalidInputError, match="no table to draw"):
        run(agent, "chart it", [data / "sales.csv"], [upstream("total revenue", "sum of revenue: 1")])


def test_unicode_and_long_labels(run: Run, tmp_path: Path) -> None:
    """Labels of any length and Western script fit; none makes the drawing warn."""
    path = tmp_path / "wide.csv"
    path.write_text("place,people\n" + "".join(f"Überlange Straße Nummer {n} in Łódź,{n}\n" for n in range(1, 60)))
    done = run(agent, "bar chart of total people per place", [path])
    assert "59 values" in done.text and len(done.files) == 1


def test_what_is_left_out(run: Run, tmp_path: Path) -> None:
    """A chart says of how many rows it was drawn, and which were left out and why, whatever it was drawn of."""
    path = tmp_path / "t.csv"
    path.write_text("shop,amount,weight\nA,1,1\nA,,2\nB,oops,3\nB,5,\nC,3,4\n")
    table = tmp_path / "u.csv"
    table.write_text("shop,n\nA,1\nB,\n")
    reading = "(3 of 5 rows; left out: 1 without amount, 1 that cannot be read, such as 'oops')."
    of_question = run(agent, "bar chart of total amount per shop", [path]).text
    of_table = run(agent, "bar chart of it", results=[upstream("x", "y", table)]).text
    assert of_question.endswith(f"3 values of t.csv {reading}")
    assert of_table.endswith("1 values of u.csv (1 of 2 rows; left out: 1 without n).")


def test_a_line_follows_time(run: Run, tmp_path: Path) -> None:
    """Names stand in the order of their letters, such as April before January: a curve over them would be a false one."""
    path = tmp_path / "t.csv"
    path.write_text("month,year,n\nJan,2001,3\nFeb,2002,5\nApr,2003,4\n")
    with pytest.raises(InvalidInputError, match=r"A line follows dates, which month does not hold\. Say 'bar chart of'\."):
        run(agent, "line chart of total n per month", [path])
    assert len(run(agent, "line chart of total n by year", [path]).files) == 1


def test_a_sign_of_money_is_no_formula(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Labels and titles are drawn as they stand in the table; a sign that the font lacks is refused rather than drawn as a box."""
    path = tmp_path / "t.csv"
    path.write_text("band,n\n$0-$50,3\n$a_$,4\n$\\foo$,9\n")
    drawn: list[str] = []
    save = Figure.savefig

    def saved(figure: Figure, *args: Any, **more: Any) -> None:
        drawn.extend(label.get_text() for label in figure.axes[0].get_yticklabels() if not label.get_parse_math())
        save(figure, *args, **more)

    monkeypatch.setattr(Figure, "savefig", saved)
    chart_maker.draw(pd.Series([3, 9], ["$0-$50", "$\\foo$"], name="n"), None, "Sum of n where band is $0-$50")
    assert drawn == ["$0-$50", "$\\foo$"]
    assert "3 values" in run(agent, "bar chart of total n per band", [path]).text
    path.write_text("city,n\n日本,3\nRom,4\n")
    with pytest.raises(InvalidInputError, match="A label has a sign that is not drawn here"):
        run(agent, "bar chart of total n per city", [path])
