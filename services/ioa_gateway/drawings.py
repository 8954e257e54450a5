"""Markdown and tables as pages show them: as HTML of our own making, in which nothing that an agent wrote is markup."""

from __future__ import annotations

import asyncio
import csv
import io
from html import escape
from itertools import islice

from ioa.protocol.goals import Artifact

MOST_DRAWN_BYTES = 64_000
"""How much of a file is drawn: of the worst that may take a second."""
_ROWS = 200
_MARKDOWN, _TABLES = ("text/markdown", "text/x-markdown"), {"text/csv": ",", "text/tab-separated-values": "\t"}
_STYLE = (
    ":root{color-scheme:light dark;font:15px/1.5 system-ui,sans-serif}body{margin:1rem;overflow-wrap:anywhere}"
    "table{border-collapse:collapse}td,th{border:1px solid #8886;padding:.2em .6em;text-align:left;vertical-align:top}"
    "pre{overflow:auto;background:#8881;padding:.8em}img{max-width:100%}"
)


def is_drawn(artifact: Artifact) -> bool:
    """Whether a file is shown as something else than its text."""
    return artifact.media_type in _MARKDOWN or artifact.media_type in _TABLES


async def drawing(artifact: Artifact, data: bytes) -> str:
    """Draw the beginning of a file, beside the event loop; what is not shown of it is said."""
    return await asyncio.to_thread(_drawing, artifact, data)


def _drawing(artifact: Artifact, data: bytes) -> str:
    text = data.decode("utf-8-sig", "replace")
    is_cut = len(data) < artifact.size_bytes
    if artifact.media_type in _MARKDOWN:
        from markdown_it import MarkdownIt  # which a gateway may never need

        body = MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"]).render(text)
    else:
        rows = _rows(text, _TABLES[artifact.media_type])
        is_cut = is_cut or len(rows) > _ROWS
        body = f"<table>{''.join(map(_row, rows[:_ROWS]))}</table>"
    rest = "<p><em>The rest of the file is not shown.</em></p>" if is_cut else ""
    return f"<!doctype html><meta charset=utf-8><title>{escape(artifact.name)}</title><style>{_STYLE}</style>{body}{rest}"


def _rows(text: str, delimiter: str) -> list[list[str]]:
    try:
        return list(islice(csv.reader(io.StringIO(text, newline=""), delimiter=delimiter), _ROWS + 1))
    except csv.Error:  # a field beyond what the module reads
        return [[line] for line in text.splitlines()[: _ROWS + 1]]


def _row(fields: list[str]) -> str:
    return f"<tr>{''.join(f'<td>{escape(one)}</td>' for one in fields)}</tr>"
