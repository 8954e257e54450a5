"""The chart maker: valid PNG files of the right kind, from results and from files."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

import csv_analyst
from chart_maker import agent
from ioa.errors import InvalidInputError
from ioa.testing.task_context import upstream
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


def test_both(run: Run, data: Path) -> None:
    """A chart is of one table."""
    parts = [
        run(csv_analyst.agent, task, [data / "sales.csv"]) for task in ("total revenue per region", "average units per product")
    ]
    with pytest.raises(InvalidInputError, match="A chart is of one table, and the earlier results hold 2"):
        run(agent, "plot both", results=[upstream("earlier", part.text, *part.paths) for part in parts])


@pytest.mark.parametrize(
    ("task", "said"),
    [
        ("bar chart of total profit per region", "'profit per region' is not understood"),
        ("scatter plot of units", "no chart that is drawn here"),
        ("bar chart of total revenue per region and month", "Group by one column"),
        ("bar chart of total revenue per region in red", "'red' is not understood"),
    ],
)
def test_refusals(task: str, said: str, run: Run, data: Path) -> None:
    """A chart that cannot be drawn is an error that says what is missing."""
    with pytest.raises(InvalidInputError) as error:
        run(agent, task, [data / "sales.csv"])
    assert said in str(error.value)


def test_unicode_and_long_labels(run: Run, tmp_path: Path) -> None:
    """Labels of any length and Western script fit; none makes the drawing warn."""
    path = tmp_path / "wide.csv"
    path.write_text("place,people\n" + "".join(f"Überlange Straße Nummer {n} in Łódź,{n}\n" for n in range(1, 60)))
    done = run(agent, "bar chart of total people per place", [path])
    assert "59 values" in done.text and len(done.files) == 1
