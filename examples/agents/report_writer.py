"""Write a report of what earlier tasks found: one Markdown file and one self-contained HTML page.

    write a report of both
    put the results into an HTML report titled "Sales 2024"
    a report of the figures and the chart

A request says nothing but the words of `_WORDS` and those of the tasks that it reports on; any other word is refused by name,
since it may be a wish that is not fulfilled here. Each result becomes a section with its words, its tables (from CSV files) and its
charts (from PNG files, embedded in the page). The same results give the same report, byte for byte: it bears no date of its own.
"""

from __future__ import annotations

import base64
import csv
import io
import re
from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import Any

from ioa import Agent, InvalidInputError, TaskContext, UpstreamResult
from task_files import decode, read_text, with_suffix
from words import account_for, format_number

agent = Agent(
    "report-writer",
    description="Writes reports of earlier results as Markdown and as one self-contained HTML page with their tables and charts.",
    skills=["report writing", "Markdown and HTML documents", "merging results into one document"],
    examples=[
        "write a report of both",
        "a report of the results",
        "put everything into an HTML report",
        "create a markdown document with the figures and the chart",
        "write up the findings as a report titled 'Sales 2024'",
        "summarise all results in one document",
        "produce a final report with the table and the charts",
        "combine the results into a web page",
    ],
    tags=["report", "markdown", "html"],
    may_team_up=False,
)
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
Block = tuple[str, Any]
"""A piece of a report: `h2`, `p`, `ul`, `img`, `table`, `pre` or `by`, and what is in it."""


@agent.task
def run(task: str, ctx: TaskContext) -> str:
    """Write both files and name what is in them.

    Raises:
        InvalidInputError: There is no earlier result to report, or the task wishes for something else than a report.
    """
    if not ctx.results:
        raise InvalidInputError(
            "There is no result to report on yet.", hint="Ask for the figures first, as in 'compute …, then write a report'."
        )
    if _SUMMARISES.match(task) and not _DOCUMENT.search(task):
        raise InvalidInputError(
            "A report keeps results as they are, it does not summarise them.", hint="Ask for 'a report of the results'."
        )
    known = _WORDS.union(*(re.findall(r"\w+", result.task_desc.lower()) for result in ctx.results))
    account_for(_TITLE.sub("", task), known, "Ask for 'a report of the results', with a title in quotes if you like.")
    blocks = [block for result in ctx.results for block in _section(result)]
    headings = [content for kind, content in blocks if kind == "h2"]
    title = match["title"] if (match := _TITLE.search(task)) else headings[0]
    ctx.artifact("report.md", "\n\n".join([f"# {_plain(title)}", *map(_markdown, blocks)]) + "\n", "text/markdown")
    ctx.artifact("report.html", _page(title, blocks), "text/html")
    kinds = [("section", "h2"), ("table", "table"), ("chart", "img")]
    counts = [(noun, sum(one == kind for one, _ in blocks)) for noun, kind in kinds]
    sections, tables, charts = (f"{count} {noun}{'s' * (count != 1)}" for noun, count in counts)
    return f"Report '{title}' (report.md and report.html) with {sections}, {tables} and {charts}: {'; '.join(headings)}."


def _section(result: UpstreamResult) -> list[Block]:
    heading = _VERBS.sub("", result.task_desc.strip()).strip(" .,:")
    heading = (
        re.sub(r"\s+(?:of|from|for|in|with)\s+(?:it|that|this|both|them)$", "", heading, flags=re.IGNORECASE) or result.agent_id
    )
    lines = [line.strip() for line in result.content.splitlines() if line.strip()]
    tables = [rows for file in with_suffix(result.artifacts, (".csv", ".tsv")) if (rows := _rows(file.path))]
    points = [line[2:] for line in lines if line.startswith("- ")]
    blocks: list[Block] = [("h2", heading[:1].upper() + heading[1:])]
    blocks += [("p", re.sub(r":$", ".", line) if tables else line) for line in lines if not line.startswith("- ")]
    # The points of a result that brings its table would say the same twice.
    blocks += [("ul", points)] if points and not tables else []
    blocks += [("img", file) for file in with_suffix(result.artifacts, (".png",))]
    for rows in tables:
        blocks.append(("table", rows[: _ROWS + 1]))
        blocks += [("p", f"{len(rows) - 1 - _ROWS} more rows are in the table's file.")] * (len(rows) > _ROWS + 1)
    for file in with_suffix(result.artifacts, (".txt", ".md")):
        text = read_text(file.path).strip()
        blocks.append(("pre", text if len(text) <= _EXCERPT_CHARS else text[:_EXCERPT_CHARS].rsplit(" ", 1)[0] + " …"))
    return [*blocks, ("by", result.agent_id)]


def _rows(path: Path) -> list[list[str]]:
    """The rows of a table, all of one length."""
    text = io.StringIO(decode(path.read_bytes()))
    rows = [[_cell(cell) for cell in row] for row in csv.reader(text, delimiter="\t" if path.suffix == ".tsv" else ",") if row]
    width = max(map(len, rows), default=0)
    return [[*row, *[""] * (width - len(row))] for row in rows]


def _cell(text: str) -> str:
    return format_number(float(text)) if re.fullmatch(r"-?\d+\.\d+(?:[eE][+-]?\d+)?", text) else text


def _plain(text: str) -> str:
    """Escape what Markdown would read as a mark-up."""
    return re.sub(r"([\\`*_\[\]<>#|])", r"\\\1", text)


def _markdown(block: Block) -> str:
    kind, content = block
    match kind:
        case "h2":
            return f"## {_plain(content)}"
        case "ul":
            return "\n".join(f"- {_plain(point)}" for point in content)
        case "img":
            return f"![{_plain(Path(content.name).stem)}]({content.name})"
        case "table":
            lines = [[_plain(cell) for cell in row] for row in content]
            return "\n".join("| " + " | ".join(row) + " |" for row in [lines[0], ["---"] * len(lines[0]), *lines[1:]])
        case "pre":
            return "\n".join(f"> {line}".rstrip() for line in content.splitlines())
    return f"*By {content}.*" if kind == "by" else _plain(content)


def _html(block: Block) -> str:
    kind, content = block
    match kind:
        case "h2":
            return f"</section>\n<section>\n<h2>{escape(content)}</h2>"
        case "ul":
            return "<ul>" + "".join(f"<li>{escape(point)}</li>" for point in content) + "</ul>"
        case "img":
            image, caption = base64.b64encode(content.path.read_bytes()).decode(), escape(Path(content.name).stem.replace("-", " "))
            return f'<figure><img alt="{caption}" src="data:image/png;base64,{image}"></figure>'
        case "table":
            head, *body = ["".join(f"<td>{escape(cell)}</td>" for cell in row) for row in content]
            rows = "".join(f"<tr>{row}</tr>" for row in body)
            return (
                f'<div class="table"><table><thead><tr>{head.replace("td>", "th>")}</tr></thead><tbody>{rows}</tbody></table></div>'
            )
    return f'<p class="by">{escape(content)}</p>' if kind == "by" else f"<{kind}>{escape(content)}</{kind}>"


def _page(title: str, blocks: Sequence[Block]) -> str:
    body = "\n".join(map(_html, blocks)).removeprefix("</section>\n")
    return (
        f'<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta name="viewport" content="width=device-width, initial-scale=1">\n<title>{escape(title)}</title>\n'
        f"<style>{_STYLE.read_text()}</style>\n</head>\n<body>\n<header><h1>{escape(title)}</h1></header>\n<main>\n{body}\n"
        "</section>\n</main>\n</body>\n</html>\n"
    )


if __name__ == "__main__":
    agent.run()
