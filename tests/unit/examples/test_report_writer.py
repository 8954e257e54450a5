"""The report writer: everything that was found, escaped, in one page that needs nothing else."""

from __future__ import annotations

import base64
from pathlib import Path

import pytest
from bs4 import BeautifulSoup

import chart_maker
import csv_analyst
from ioa.errors import DeclinedError, InvalidInputError
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


@pytest.mark.parametrize(
    "task",
    [
        "Add both results", "Write a PDF report of both", "a report about the best month",
    ],
)  # fmt: skip
def test_what_is_more_than_a_report_of_results_is_refused(task: str, run: Run) -> None:
    """Nothing else that can be said of results is taken for it, whatever the tasks before were called."""
    results = [upstream("divide 3 by 4, and add 2", "2.75"), upstream("find the best month", "May")]
    with pytest.raises(DeclinedError):
        run(agent, task, results=results)


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


def test_points(run: Run) -> None:
    """What a result says is quoted, line by line."""
    done = run(agent, "a report", results=[upstream("my <title>", "found:\n- one\n- two")], goal="read it")
    page = BeautifulSoup(done.files["report.html"], "html.parser")
    assert (page.select(".words")[0].get_text(), page.select("h1")[0].get_text()) == ("found:\n- one\n- two", "My <title>")


def test_same_results_same_report(run: Run) -> None:
    """The same results give the same files, byte for byte."""
    results = [upstream("say hello", "hello")]
    assert run(agent, "a report", results=results).files == run(agent, "a report", results=results).files


def test_long_table_is_cut(run: Run, tmp_path: Path) -> None:
    """A long table shows its beginning and says how much is left out."""
    table = tmp_path / "long.csv"
    table.write_text("n,square\n" + "".join(f"{n},{n * n}\n" for n in range(100)))
    done = run(agent, "a report", results=[upstream("squares", "squares:", table)])
    page = BeautifulSoup(done.files["report.html"], "html.parser")
    assert len(page.select("tbody tr")) == 60
    assert "40 more rows" in page.get_text()


def test_images_that_no_page_can_hold_are_not_read(run: Run, tmp_path: Path) -> None:
    """Several megabytes for each of them in memory would be the agent's own."""
    image = tmp_path / "chart.png"
    with image.open("wb") as file:
        file.truncate(5_000_001)
    with pytest.raises(InvalidInputError, match=r"have 10,000,002 bytes; up to 10,000,000 go into one page"):
        run(agent, "a report", results=[upstream("draw it", "drawn", image), upstream("draw it again", "drawn", image)])


def test_nothing_to_report(run: Run) -> None:
    """Without results there is no report, and the error says what to do."""
    with pytest.raises(DeclinedError, match="no result to report"):
        run(agent, "write a report")


def test_a_table_that_cannot_be_read(run: Run, tmp_path: Path) -> None:
    """It does not cost the report."""
    table = tmp_path / "empty.csv"
    table.write_text("")
    done = run(agent, "a report", results=[upstream("say it", "said", table)])
    assert "empty.csv cannot be shown as a table" in done.files["report.html"].decode()
