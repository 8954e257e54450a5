"""Write a report of what earlier tasks found: one self-contained HTML page.

Each result becomes a section with its words, its tables (from CSV files) and its charts (from PNG files, embedded in the page).
The same results give the same report, byte for byte: it bears no date of its own.
"""

import base64
import re
from collections.abc import Iterator
from html import escape
from pathlib import Path
from string import Template

from csv_analyst import TABLE_READER
from ioa import Agent, DeclinedError, TaskContext, UpstreamResult
from ioa.files import with_suffix
from request import account_for, format_number

agent = Agent(
    "report-writer",
    description="Writes reports of earlier results as one self-contained HTML page with their tables and charts.",
    skills=["report writing", "HTML documents", "merging results into one document"],
    examples=[
        "write a report of both", "a report of the results", "put everything into an HTML report",
        "write a document about it", "make a web page of them", "put all results into one document",
        "combine the results into a web page",
    ],
    tags=["report", "html"], declines=True, may_team_up=False,
)  # fmt: skip
_ROWS = 60
_PAGE = Path(__file__).with_name("report.html")
_RESULTS = r"(?:it|both|all|them|that|this|these|everything|(?:the |all |all the |both )?(?:result|results|findings))"
_REPORT = r"(?:(?:a|an|the|one|final|full|HTML|web) )*(?:report|document|page)"
_REQUEST = re.compile(
    rf"(?i)(?:please )?(?:(?:(?:write|make|create|produce|prepare|give me) )?{_REPORT}(?: (?:of|on|about|from|with) {_RESULTS})?"
    rf"|(?:put|combine|merge|collect|write up) {_RESULTS} (?:together )?(?:in|into|as|to) {_REPORT})"
)
_WORDS = frozenset(re.findall("[a-z]+", _REQUEST.pattern.lower()))


@agent.task
def run(task: str, ctx: TaskContext) -> str:
    """Write the page and name what is in it; decline what wishes for something else, or where there is no result."""
    hint = "Say 'write a report of both', 'a report of the results' or 'put everything into an HTML report'."
    account_for(task, _WORDS, hint)
    if not _REQUEST.fullmatch(task.strip(" .!")):
        raise DeclinedError(f"{task[:200]!r} is no request for a report.", hint=hint)
    if not ctx.results:
        raise DeclinedError("There is no result to report on.", hint="Ask for it first: 'What is 2 + 3? Write a report of it.'")
    headings = [_heading(result) for result in ctx.results]
    body = "\n".join(line for heading, one in zip(headings, ctx.results, strict=True) for line in _section(heading, one))
    page = Template(_PAGE.read_text()).substitute(title=escape(headings[0]), body=body)
    ctx.artifact("report.html", page, "text/html")
    counts = (("section", len(headings)), ("table", body.count("<table")), ("chart", body.count("<img")))
    first, second, third = (f"{count} {noun}{'s' * (count != 1)}" for noun, count in counts)
    return f"Report '{headings[0]}' (report.html) with {first}, {second} and {third}: {'; '.join(headings)}."


def _heading(result: UpstreamResult) -> str:
    line = " ".join(result.task_desc.split()).strip(" .,:") or result.agent_id
    return line[:1].upper() + line[1:]


def _section(heading: str, result: UpstreamResult) -> Iterator[str]:
    """A result as HTML. Whatever looks like HTML in it is shown as text."""
    tables = [TABLE_READER.call("report_writer.table_of_file", file.path) for file in with_suffix(result.artifacts, (".csv",))]
    # The points of a result that brings its table would say the same twice.
    lines = [line for line in result.content.splitlines() if line.strip() and not (tables and line.startswith("- "))]
    yield f'<h2>{escape(heading)}</h2>\n<p class="words">' + escape("\n".join(lines)) + "</p>"
    for file in with_suffix(result.artifacts, (".png",)):
        image = base64.b64encode(file.path.read_bytes()).decode()
        yield f'<p><img alt="{escape(Path(file.name).stem)}" src="data:image/png;base64,{image}"></p>'
    yield from tables
    yield f"<p><em>By {escape(result.agent_id)}.</em></p>"


def table_of_file(path: Path) -> str:
    """Show a CSV file as a table in HTML."""
    import pandas as pd  # here, since an agent that has nothing to do yet should not load it

    try:
        table = pd.read_csv(path, dtype={0: str})
    except ValueError:  # it is empty, or its lines differ in length
        return f"<p>{escape(path.name)} cannot be shown as a table.</p>"
    more = f"\n<p>{len(table) - _ROWS} more rows are in the table's file.</p>" if len(table) > _ROWS else ""
    return str(table.head(_ROWS).to_html(index=False, border=0, na_rep="", float_format=format_number)) + more
