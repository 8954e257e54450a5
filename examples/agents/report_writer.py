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
from dataclasses import dataclass
from html import escape
from pathlib import Path

from ioa import Agent, InputFile, InvalidInputError, TaskContext, UpstreamResult
from report_page import STYLE
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
_TITLE = re.compile(r"(?:titled?|called|named|with the title|about)\s+[\"“'](?P<title>[^\"”']+)[\"”']", re.IGNORECASE)
_SUMMARISES = re.compile(r"\W*(?:please )?summari[sz]e\b", re.IGNORECASE)
_DOCUMENT = re.compile(r"\b(?:report|document|page|markdown|html)\b", re.IGNORECASE)
_WORDS = frozenset(
    "please write make create produce prepare give me put compile combine merge collect summarise summarize up out into in as of "
    "about on for from with using and the a an one all final complete html markdown report document page web summary it this that "
    "these those them both everything result results finding findings figure figures number numbers table tables chart charts "
    "total totals together each above two three four five titled title called named".split()
)
_VERBS = re.compile(
    r"^(?:(?:please|can you|could you|i want you to|compute|calculate|find|determine|get|tell me|show|load|analy[sz]e"
    r"|give me|make|draw|prepare|coordinate|organi[sz]e|the|a|an|full|complete)\s+)+",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class _Section:
    heading: str
    by: str
    lead: str
    points: tuple[str, ...]
    tables: tuple[tuple[str, list[list[str]]], ...]
    charts: tuple[tuple[str, bytes], ...]
    excerpts: tuple[tuple[str, str], ...]


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
    sections = [_section(result) for result in ctx.results]
    title = match["title"] if (match := _TITLE.search(task)) else sections[0].heading
    ctx.artifact("report.md", _markdown(title, sections), "text/markdown")
    ctx.artifact("report.html", _html(title, sections), "text/html")
    tables = sum(len(section.tables) for section in sections)
    charts = sum(len(section.charts) for section in sections)
    names = "; ".join(section.heading for section in sections)
    count = f"{_count(len(sections), 'section')}, {_count(tables, 'table')} and {_count(charts, 'chart')}"
    return f"Report '{title}' (report.md and report.html) with {count}: {names}."


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _section(result: UpstreamResult) -> _Section:
    tables = tuple((file.name, _rows(file.path)) for file in with_suffix(result.artifacts, (".csv", ".tsv")))
    lines = [line.rstrip() for line in result.content.strip().splitlines() if line.strip()]
    points = tuple(line.lstrip()[2:] for line in lines if line.lstrip().startswith("- "))
    lead = "\n".join(re.sub(r":$", "." if tables else ":", line) for line in lines if not line.lstrip().startswith("- "))
    charts = tuple((file.name, file.path.read_bytes()) for file in with_suffix(result.artifacts, (".png",)))
    excerpts = tuple((file.name, _excerpt(file)) for file in with_suffix(result.artifacts, (".txt", ".md")))
    heading = _VERBS.sub("", result.task_desc.strip()).strip(" .,:")
    heading = (
        re.sub(r"\s+(?:of|from|for|in|with)\s+(?:it|that|this|both|them)$", "", heading, flags=re.IGNORECASE) or result.agent_id
    )
    # The points of a result that brings its table would say the same twice.
    return _Section(heading[:1].upper() + heading[1:], result.agent_id, lead, () if tables else points, tables, charts, excerpts)


def _rows(path: Path) -> list[list[str]]:
    text = decode(path.read_bytes())
    return [
        [_cell(cell) for cell in row]
        for row in csv.reader(io.StringIO(text), delimiter="\t" if path.suffix == ".tsv" else ",")
        if row
    ]


def _cell(text: str) -> str:
    return format_number(float(text)) if re.fullmatch(r"-?\d+\.\d+(?:[eE][+-]?\d+)?", text) else text


def _excerpt(file: InputFile) -> str:
    text = read_text(file.path).strip()
    return text if len(text) <= 1_500 else text[:1_500].rsplit(" ", 1)[0] + " …"


def _markdown(title: str, sections: Sequence[_Section]) -> str:
    parts = [f"# {_plain(title)}"]
    for section in sections:
        parts.append(f"## {_plain(section.heading)}")
        parts += [_plain(line) for line in section.lead.splitlines()]
        if section.points:
            parts.append("\n".join(f"- {_plain(point)}" for point in section.points))
        parts += [_markdown_table(rows) for _, rows in section.tables if rows]
        parts += [f"![{_plain(Path(name).stem)}]({name})" for name, _ in section.charts]
        parts += ["\n".join(f"> {line}" if line else ">" for line in text.splitlines()) for _, text in section.excerpts]
        parts.append(f"*By {section.by}.*")
    return "\n\n".join(parts) + "\n"


def _plain(text: str) -> str:
    """Escape what Markdown would read as a mark-up."""
    return re.sub(r"([\\`*_\[\]<>#|])", r"\\\1", text)


def _markdown_table(rows: list[list[str]]) -> str:
    width = max(len(row) for row in rows)
    padded = [[*row, *[""] * (width - len(row))] for row in rows[: _ROWS + 1]]
    rule = ["---:" if number else "---" for number in _number_columns(padded)]
    lines = [padded[0], rule, *padded[1:]]
    table = "\n".join("| " + " | ".join(cell if cells is rule else _plain(cell) for cell in cells) + " |" for cells in lines)
    return table + (f"\n\n*{len(rows) - 1 - _ROWS} more rows are in the table's file.*" if len(rows) > _ROWS + 1 else "")


def _number_columns(rows: list[list[str]]) -> list[bool]:
    def is_number(column: int) -> bool:
        cells = [row[column] for row in rows[1:] if row[column]]
        return bool(cells) and all(re.fullmatch(r"-?[\d.]+(?:e[+-]?\d+)?", cell) for cell in cells)

    return [is_number(column) for column in range(len(rows[0]))]


def _html(title: str, sections: Sequence[_Section]) -> str:
    body = "\n".join(_html_section(section, index) for index, section in enumerate(sections, 1))
    contents = "".join(f'<li><a href="#s{index}">{escape(section.heading)}</a></li>' for index, section in enumerate(sections, 1))
    overview = f"<nav><ol>{contents}</ol></nav>" if len(sections) > 1 else ""
    return (
        f'<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta name="viewport" content="width=device-width, initial-scale=1">\n<title>{escape(title)}</title>\n'
        f"<style>{STYLE}</style>\n</head>\n<body>\n<header><h1>{escape(title)}</h1>{overview}</header>\n<main>\n{body}\n</main>\n</body>\n</html>\n"
    )


def _html_section(section: _Section, index: int) -> str:
    parts = [f'<section id="s{index}">', f"<h2>{escape(section.heading)}</h2>"]
    parts += [f"<p>{escape(line)}</p>" for line in section.lead.splitlines()]
    if section.points:
        parts.append("<ul>" + "".join(f"<li>{escape(point)}</li>" for point in section.points) + "</ul>")
    for name, data in section.charts:
        image = base64.b64encode(data).decode()
        caption = escape(Path(name).stem.replace("-", " "))
        parts.append(f'<figure><img alt="{caption}" src="data:image/png;base64,{image}"></figure>')
    parts += [_html_table(rows) for _, rows in section.tables if rows]
    parts += [f"<details><summary>{escape(name)}</summary><pre>{escape(text)}</pre></details>" for name, text in section.excerpts]
    parts += [f'<p class="by">{escape(section.by)}</p>', "</section>"]
    return "\n".join(parts)


def _html_table(rows: list[list[str]]) -> str:
    width = max(len(row) for row in rows)
    padded = [[*row, *[""] * (width - len(row))] for row in rows[: _ROWS + 1]]
    classes = [' class="number"' if number else "" for number in _number_columns(padded)]

    def line(cells: list[str], tag: str) -> str:
        return "<tr>" + "".join(f"<{tag}{kind}>{escape(cell)}</{tag}>" for cell, kind in zip(cells, classes, strict=True)) + "</tr>"

    body = "".join(line(row, "td") for row in padded[1:])
    more = len(rows) - 1 - _ROWS
    note = f'<p class="by">{more} more rows are in the table\'s file.</p>' if more > 0 else ""
    return f'<div class="table"><table><thead>{line(padded[0], "th")}</thead><tbody>{body}</tbody></table></div>{note}'


if __name__ == "__main__":
    agent.run()
