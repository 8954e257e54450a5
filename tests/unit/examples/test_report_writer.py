"""The report writer: each result, escaped, in one page that needs no other file."""

from __future__ import annotations

import base64
from pathlib import Path

from bs4 import BeautifulSoup

import chart_maker
import csv_analyst
from ioa.testing.recording_context import upstream
from report_writer import agent
from tests.unit.examples.agent_run import Run


def test_report_holds_tables_and_charts(run: Run, data: Path) -> None:
    """The page holds every cell, and the chart's own bytes."""
    figures = run(csv_analyst.agent, "sum of revenue by region", [data / "sales.csv"])
    first = upstream("sum of revenue by region", figures.text, *figures.paths, agent_id="csv-analyst")
    chart = run(chart_maker.agent, "bar chart of #1", results=[first])
    second = upstream("bar chart of #1", chart.text, *chart.paths, agent_id="chart-maker")

    done = run(agent, "report of #1 and #2", results=[first, second])

    page = BeautifulSoup(done.files["report.html"], "html.parser")
    cells = [[cell.get_text() for cell in row.find_all(["td", "th"])] for row in page.find_all("tr")]
    image = page.find("img")
    assert image is not None
    assert done.text == "report.html: a report of sum of revenue by region; bar chart of #1."
    assert cells[:2] == [["region", "sum of revenue"], ["East", "181583.5"]]
    assert base64.b64decode(str(image["src"]).removeprefix("data:image/png;base64,")) == next(iter(chart.files.values()))


def test_words_of_others_are_escaped(run: Run) -> None:
    """A result is data of a stranger."""
    page = run(agent, "report of #1", results=[upstream("<b>", "<script>x</script>", agent_id="eve")]).files["report.html"].decode()
    assert "<script>" not in page and "&lt;script&gt;" in page and "&lt;b&gt;" in page
