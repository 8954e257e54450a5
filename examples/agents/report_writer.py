"""Write a report of all earlier results: one self-contained HTML page, byte for byte the same for the same results."""

import base64
import re
from collections.abc import Iterable, Iterator
from html import escape
from pathlib import Path

from ioa import Agent, DeclinedError, InvalidInputError, TaskContext, UpstreamResult
from ioa.files import of_results, with_suffix
from request import format_number

agent = Agent(
    "report-writer", description="Writes reports of earlier results as one self-contained HTML page with their tables and charts.",
    skills=["report writing", "HTML documents", "merging results into one document"], examples=[
        "write a report of both", "a report of the results", "put everything into an HTML report",
        "create a document of everything", "write up the findings as a report", "put all results into one document",
        "produce a final report of the findings", "combine the results into a web page",
    ], tags=["report", "html"], declines=True, may_team_up=False,
)  # fmt: skip
_ROWS, _COLUMNS, _CELL_CHARS, _STYLE = 60, 60, 1_000, Path(__file__).with_name("report.css")
_IMAGE_BYTES, _PAGE_BYTES = 10_000_000, 20_000_000
_RESULTS = r"(?:it|them|this|that|these|those|both|all|everything|(?:(?:the|these|both|all) )*(?:results?|findings?|answers?))"
_REPORT = r"(?:(?:an?|the|one|final|complete|html|web) )*(?:report|document|page)"
_MADE = rf"{_REPORT}(?: (?:of|on|about|for|from|with) {_RESULTS})?"
_PUT = rf"(?:(?:put|compile|combine|merge|collect|write)(?: up)? )?{_RESULTS}(?: together| up)? (?:in|into|to|as) {_REPORT}"
_REQUEST = re.compile(rf"(?i)(?:please )?(?:(?:write|make|create|produce|prepare|give me) )?(?:{_MADE}|{_PUT})[ .!]*")
_HINT = "Say 'write a report of both', 'a report of the results' or 'put everything into an HTML report'."


@agent.task(of_one_user=1)
def run(task: str, ctx: TaskContext) -> str:
    """Write the page and name what is in it; decline what wishes for something else, or where there is no result."""
    if not _REQUEST.fullmatch(" ".join(task.split())):
        raise DeclinedError(f"{task[:200]!r} is no request for a report of results alone.", hint=_HINT)
    if not ctx.results:
        raise DeclinedError("There is no result to report on.", hint="Ask for it first: 'What is 2 + 3? Write a report of it.'")
    if (size := sum(file.path.stat().st_size for file in of_results(ctx, (".png",)))) > _IMAGE_BYTES:
        raise InvalidInputError(f"The images of the results have {size:,} bytes; up to {_IMAGE_BYTES:,} go into one page.")
    title, *more = map(_heading, ctx.results)
    ctx.artifact("report.html", b"\n".join(_bounded(_page(title, ctx))), "text/html")
    return f"Report '{title}' (report.html) of: {'; '.join([title, *more])}."


def _bounded(page: Iterable[str]) -> Iterator[bytes]:
    """Hand on a page as it is written, as far as one may be: all of it is held by the process of all of the agent's tasks."""
    left = _PAGE_BYTES
    for piece in page:
        yield (written := piece.encode())
        if (left := left - len(written)) < 0:
            raise InvalidInputError(f"The report would have more than {_PAGE_BYTES:,} bytes.", hint="Ask for one of fewer results.")


def _page(title: str, ctx: TaskContext) -> Iterator[str]:
    yield (
        f'<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta name="viewport" content="width=device-width, initial-scale=1">\n<title>{escape(title)}</title>\n'
        f"<style>{_STYLE.read_text()}</style>\n</head>\n<body>\n<main>\n<h1>{escape(title)}</h1>"
    )
    for result in ctx.results:
        yield from _section(result)
    yield "</main>\n</body>\n</html>\n"


def _heading(result: UpstreamResult) -> str:
    line = " ".join(result.task_desc.split()).strip(" .,:") or result.agent_id
    return line[:1].upper() + line[1:]


def _section(result: UpstreamResult) -> Iterator[str]:
    tables = with_suffix(result.artifacts, (".csv",))
    words = "\n".join(line for line in result.content.strip().splitlines() if not (tables and line.startswith("- ")))
    yield f'<h2>{escape(_heading(result))}</h2>\n<p class="words">{escape(words)}</p>'
    for file in with_suffix(result.artifacts, (".png",)):
        image = base64.b64encode(file.path.read_bytes()).decode()
        yield f'<p><img alt="{escape(Path(file.name).stem)}" src="data:image/png;base64,{image}"></p>'
    yield from (table_of_file(one.path) for one in tables)
    yield f"<p><em>By {escape(result.agent_id)}.</em></p>"


def table_of_file(path: Path) -> str:
    """Show a CSV file as a table in HTML."""
    import pandas as pd  # here, since an agent that has nothing to do yet should not load it

    try:
        table = pd.read_csv(path, dtype={0: str})
    except ValueError:  # it is empty, or its lines differ in length
        return f"<p>{escape(path.name)} cannot be shown as a table.</p>"
    left = [(len(table) - _ROWS, "rows"), (len(table.columns) - _COLUMNS, "columns")]
    more = "".join(f"\n<p>{count} more {what} are in the table's file.</p>" for count, what in left if count > 0)
    shown = table.iloc[:_ROWS, :_COLUMNS].map(_cut).rename(columns=_cut)
    return str(shown.to_html(index=False, border=0, na_rep="", float_format=format_number)) + more


def _cut(cell: object) -> object:
    return f"{cell[:_CELL_CHARS]}…" if isinstance(cell, str) and len(cell) > _CELL_CHARS else cell
