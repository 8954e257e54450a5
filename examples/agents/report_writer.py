"""Write a report of earlier results: one self-contained HTML page with their tables and charts."""

import base64
import re
from collections.abc import Iterator
from html import escape
from pathlib import Path

from ioa import Agent, DeclinedError, InputFile, InvalidInputError, TaskContext, UpstreamResult
from request import results_by_number
from tables import read_table

agent = Agent(
    "report-writer", description="Writes a report of earlier results: one HTML page with their texts, tables and charts.",
    skills=["report writing", "HTML documents"], examples=[
        "report of #1 and #2", "report of #1",
        "1. sum of NUMBER by COLUMN in FILE.csv\n2. bar chart of #1\n3. report of #1 and #2", "report of #1, #2 and #3",
        "report of #2", "write a report",
    ], tags=["report", "html"], declines=True, may_team_up=False,
)  # fmt: skip
_FORM = re.compile(r"report of #\d+(?:(?:, ?| and |, and )#\d+)*", re.IGNORECASE)
_STYLE, _MAX_BYTES = Path(__file__).with_name("report.css"), 10_000_000


@agent.task
def run(task: str, ctx: TaskContext) -> str:
    """Write the page."""
    if not _FORM.fullmatch(task.strip()):
        raise DeclinedError("This is not a report of results.", hint="Write 'report of #1 and #2'; #1 is item 1 of the list.")
    results = results_by_number(task, ctx)
    if sum(file.path.stat().st_size for result in ctx.results for file in result.artifacts) > _MAX_BYTES:
        raise InvalidInputError(f"The files of the results have more than {_MAX_BYTES:,} bytes.")
    sections = "\n".join(piece for result in results.values() for piece in _section(result))
    ctx.artifact(
        "report.html",
        f'<!DOCTYPE html>\n<html>\n<head>\n<meta charset="utf-8">\n<meta name="viewport" content="width=device-width">\n'
        f"<title>Report</title>\n<style>{_STYLE.read_text()}</style>\n</head>\n<body>\n<main>\n{sections}\n</main>\n</body>\n</html>\n",
        "text/html",
    )
    return f"report.html: a report of {'; '.join(result.task_desc for result in results.values())}."


def _section(result: UpstreamResult) -> Iterator[str]:
    yield f'<h2>{escape(result.task_desc)}</h2>\n<p class="words">{escape(result.content.strip())}</p>'
    for file in result.artifacts:
        if file.name.endswith(".png"):
            image = base64.b64encode(file.path.read_bytes()).decode()
            yield f'<p><img alt="{escape(Path(file.name).stem)}" src="data:image/png;base64,{image}"></p>'
        elif file.name.endswith(".csv"):
            yield _table(file)
    yield f"<p><em>By {escape(result.agent_id)}.</em></p>"


def _table(file: InputFile) -> str:
    table = read_table(file)
    head, *rows = (
        "".join(f"<{tag}>{escape(cell)}</{tag}>" for cell in row)
        for tag, row in [("th", table.columns), *(("td", row) for row in table.rows)]
    )
    body = "\n".join(f"<tr>{row}</tr>" for row in rows)
    return f"<table>\n<thead><tr>{head}</tr></thead>\n<tbody>\n{body}\n</tbody>\n</table>"
