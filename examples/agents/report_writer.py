"""Write a report of what earlier tasks found: one Markdown file and one self-contained HTML page.

A request says nothing but the words of `_WORDS` and those of the tasks that it reports on; any other word is refused by name,
since it may be a wish that is not fulfilled here. Each result becomes a section with its words, its tables (from CSV files) and its
charts (from PNG files, embedded in the page). The same results give the same report, byte for byte: it bears no date of its own.
"""

from __future__ import annotations

import base64
import csv
import io
import re
from html import escape
from pathlib import Path
from urllib.parse import quote

from ioa import Agent, DeclinedError, InvalidInputError, TaskContext, UpstreamResult
from task_files import decode, read_text, with_suffix
from words import account_for, format_number

agent = Agent(
    "report-writer",
    description="Writes reports of earlier results as Markdown and as one self-contained HTML page with their tables and charts.",
    skills=["report writing", "Markdown and HTML documents", "merging results into one document"],
    examples=[
        "write a report of both", "a report of the results", "put everything into an HTML report",
        "create a markdown document with the figures and the chart", "write up the findings as a report titled 'Sales 2024'",
        "summarise all results in one document", "produce a final report with the table and the charts",
        "combine the results into a web page",
    ],
    tags=["report", "markdown", "html"],
    may_team_up=False,
)  # fmt: skip
_ROWS = 60
_EXCERPT_CHARS = 1_500
_STYLE = Path(__file__).with_name("report.css")
_TITLE = re.compile(r"(?:titled?|called|named|with the title|about)\s+[\"“'](?P<title>[^\"”']+)[\"”']", re.IGNORECASE)
_WORDS = frozenset(
    "please write make create produce prepare give me put compile combine merge collect summarise summarize up out into in as of "
    "about on for from with using and the a an one all final complete html markdown report document page web summary it this that "
    "these those them both everything result results finding findings figure figures number numbers table tables chart charts "
    "total totals together each above two three four five titled title called named".split()
)
_SUMMARISES = re.compile(r"\W*(?:please )?summari[sz]e\b", re.IGNORECASE)
_DOCUMENT = re.compile(r"\b(?:report|document|page|markdown|html)\b", re.IGNORECASE)
_VERBS = re.compile(
    r"^(?:(?:please|compute|calculate|find|determine|get|tell me|show|load|analy[sz]e|give me|make|draw|prepare|the|a|an)\s+)+",
    re.IGNORECASE,
)


@agent.task
def run(task: str, ctx: TaskContext) -> str:
    """Write both files and name what is in them.

    Raises:
        DeclinedError: There is no earlier result to report.
        InvalidInputError: The task wishes for something else than a report.
    """
    if not ctx.results:
        raise DeclinedError(
            "There is no result to report on yet.", hint="Ask for the figures first, as in 'compute …, then write a report'."
        )
    if _SUMMARISES.match(task) and not _DOCUMENT.search(task):
        raise InvalidInputError(
            "A report keeps results as they are, it does not summarise them.", hint="Ask for 'a report of the results'."
        )
    known = _WORDS.union(*(re.findall(r"\w+", result.task_desc.lower()) for result in ctx.results))
    account_for(_TITLE.sub("", task), known, "Ask for 'a report of the results', with a title in quotes if you like.")
    sections = [_section(result) for result in ctx.results]
    headings = [heading for heading, _, _ in sections]
    title = match["title"] if (match := _TITLE.search(task)) else headings[0]
    charts = {file.name: file.path for result in ctx.results for file in with_suffix(result.artifacts, (".png",))}
    report = "\n\n".join([f"# {_plain(title)}", *(text for _, text, _ in sections)]) + "\n"
    ctx.artifact("report.md", report, "text/markdown")
    ctx.artifact("report.html", _page(title, report, charts), "text/html")
    counts = (("section", len(sections)), ("table", sum(tables for *_, tables in sections)), ("chart", len(charts)))
    first, second, third = (f"{count} {noun}{'s' * (count != 1)}" for noun, count in counts)
    return f"Report '{title}' (report.md and report.html) with {first}, {second} and {third}: {'; '.join(headings)}."


def _section(result: UpstreamResult) -> tuple[str, str, int]:
    """A result as Markdown: its heading, its text, and how many tables are in it."""
    heading = _VERBS.sub("", result.task_desc.strip()).strip(" .,:")
    heading = (
        re.sub(r"\s+(?:of|from|for|in|with)\s+(?:it|that|this|both|them)$", "", heading, flags=re.IGNORECASE) or result.agent_id
    )
    heading = heading[:1].upper() + heading[1:]
    tables = [table for file in with_suffix(result.artifacts, (".csv", ".tsv")) if (table := _table(file.path))]
    lines = [line.strip() for line in result.content.splitlines() if line.strip()]
    points = [f"- {_plain(line[2:])}" for line in lines if line.startswith("- ")]
    parts = [f"## {_plain(heading)}"]
    parts += [_plain(re.sub(r":$", ".", line) if tables else line) for line in lines if not line.startswith("- ")]
    # The points of a result that brings its table would say the same twice.
    parts += ["\n".join(points)] if points and not tables else []
    parts += [f"![{_plain(Path(file.name).stem)}](<{quote(file.name)}>)" for file in with_suffix(result.artifacts, (".png",))]
    parts += tables
    for file in with_suffix(result.artifacts, (".txt", ".md")):
        text = read_text(file.path).strip()
        shown = text if len(text) <= _EXCERPT_CHARS else text[:_EXCERPT_CHARS].rsplit(" ", 1)[0] + " …"
        fence = "~" * (3 + max(map(len, re.findall("~+", shown)), default=0))
        parts.append(f"{fence}\n{shown}\n{fence}")
    return heading, "\n\n".join([*parts, f"*By {_plain(result.agent_id)}.*"]), len(tables)


def _table(path: Path) -> str:
    text = io.StringIO(decode(path.read_bytes()))
    rows = [list(map(_cell, row)) for row in csv.reader(text, delimiter="\t" if path.suffix == ".tsv" else ",") if row]
    lines = ["| " + " | ".join(row) + " |" for row in rows[: _ROWS + 1]]
    lines[1:1] = ["|" + " --- |" * len(rows[0])] if rows else []
    more = f"\n\n{len(rows) - 1 - _ROWS} more rows are in the table's file." if len(rows) > _ROWS + 1 else ""
    return "\n".join(lines) + more


def _cell(text: str) -> str:
    return format_number(float(text)) if re.fullmatch(r"-?\d+\.\d+(?:[eE][+-]?\d+)?", text) else _plain(text)


def _plain(text: str) -> str:
    """Escape what Markdown would read as a mark-up, a list's marker at the beginning included; one line stays one."""
    escaped = re.sub(r"([\\`*_\[\]<>#|&~])", r"\\\1", " ".join(text.split()))
    return re.sub(r"^(\d*)([-+.)])(?=[\s-]|$)", r"\1\\\2", escaped)


def _page(title: str, report: str, charts: dict[str, Path]) -> str:
    """The report as a page that needs nothing else: its charts are in it. Whatever is HTML in a result is shown as text."""
    from markdown_it import MarkdownIt  # here, since an agent that has nothing to do yet should not load it

    for name, path in charts.items():
        report = report.replace(f"](<{quote(name)}>)", f"](data:image/png;base64,{base64.b64encode(path.read_bytes()).decode()})")
    body = MarkdownIt("commonmark", {"html": False}).enable("table").render(report)
    return (
        f'<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta name="viewport" content="width=device-width, initial-scale=1">\n<title>{escape(title)}</title>\n'
        f"<style>{_STYLE.read_text()}</style>\n</head>\n<body>\n<main>\n{body}</main>\n</body>\n</html>\n"
    )


if __name__ == "__main__":
    agent.run()
