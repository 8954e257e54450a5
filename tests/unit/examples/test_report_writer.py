"""The report writer: everything that was found, escaped, in one page that needs nothing else."""

from __future__ import annotations

import base64
from pathlib import Path

import pytest
from bs4 import BeautifulSoup

import chart_maker
import csv_analyst
from ioa.errors import DeclinedError
from ioa.testing.task_context import upstream
from report_writer import agent
from tests.unit.examples.agent_run import Run

GOAL = "compute the total sales per region in sales.csv, make a bar chart of it, and write a report of both"


def test_report_of_both(run: Run, data: Path) -> None:
    """A report holds the title from the goal, every table cell, and the chart's own bytes."""
    figures = run(csv_analyst.agent, "total revenue per region", [data / "sales.csv"])
    first = upstream("compute the total sales per region in sales.csv", figures.text, *figures.paths, agent_id="csv-analyst")
    chart = run(chart_maker.agent, "make a bar chart of it", results=[first])
    second = upstream("make a bar chart of it", chart.text, *chart.paths, agent_id="chart-maker")

    done = run(agent, "write a report of both", results=[first, second], goal=GOAL)

    page = BeautifulSoup(done.files["report.html"], "html.parser")
    cells = [[cell.get_text() for cell in row.find_all(["td", "th"])] for row in page.find_all("tr")]
    image = page.find("img")
    assert image is not None
    assert done.text == (
        "Report 'Compute the total sales per region in sales.csv' (report.html) of: "
        "Compute the total sales per region in sales.csv; Make a bar chart of it."
    )
    assert cells[:2] == [["region", "sum of revenue"], ["East", "181583.5"]]
    assert base64.b64decode(str(image["src"]).removeprefix("data:image/png;base64,")) == next(iter(chart.files.values()))


@pytest.mark.parametrize("task", ["translate the report into French", "a radar chart of it", "write three sentences about it"])
def test_what_is_no_report_is_refused(task: str, run: Run) -> None:
    """A wish that is not fulfilled is refused, rather than answered with a report of everything."""
    with pytest.raises(DeclinedError, match=r"is no request for a report of results alone\. Say 'write a report of both'"):
        run(agent, task, results=[upstream("find the best month", "May")], goal="x")


def test_needs_nothing_else(run: Run) -> None:
    """The page loads nothing: no script, no link, no image but embedded ones."""
    done = run(agent, "a report", results=[upstream("say hello", "hello")], goal="say hello")
    page = BeautifulSoup(done.files["report.html"], "html.parser")
    assert page.find_all(["script", "link", "img", "iframe"]) == []


def test_hostile_text_is_escaped(run: Run, tmp_path: Path) -> None:
    """Markup in titles, words and cells shows as text."""
    hostile = "<script>alert('x')</script>"
    table = tmp_path / "t.csv"
    table.write_text(f"name,{hostile}\na|b,1\n")
    done = run(agent, "a report", results=[upstream(hostile, f"found {hostile}\n- *point* {hostile}", table)], goal=hostile)
    page = BeautifulSoup(done.files["report.html"], "html.parser")
    assert page.find("script") is None
    assert [cell.get_text() for cell in page.find_all(["th", "td"])] == ["name", hostile, "a|b", "1"]


def test_long_table_is_cut(run: Run, tmp_path: Path) -> None:
    """A long table shows its beginning and says how much is left out."""
    table = tmp_path / "long.csv"
    table.write_text("n,square\n" + "".join(f"{n},{n * n}\n" for n in range(100)))
    done = run(agent, "a report", results=[upstream("squares", "squares:", table)])
    page = BeautifulSoup(done.files["report.html"], "html.parser")
    assert len(page.select("tbody tr")) == 60
    assert "40 more rows" in page.get_text()


def test_nothing_to_report(run: Run) -> None:
    """Without results there is no report, and the error says what to do."""
    with pytest.raises(DeclinedError, match="no result to report"):
        run(agent, "write a report")
