"""The process that draws one file: what it reads may take very long, and takes nothing of the gateway's own time.

It is given the text of a file at its stdin, and says the HTML of it. It imports nothing of this project, so that it is there soon.
"""

from __future__ import annotations

import csv
import io
import os
import resource
import sys
from collections.abc import Sequence
from html import escape
from itertools import islice
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from markdown_it.token import Token

MARKDOWN = "markdown"
SECONDS = 2
"""Of a processor, behind which the system ends the process."""
_MEMORY = 160 * 2**20
"""Of addresses, beside a gateway that has 512 MiB with it: of 64 kB that were tried, 60,000 cells of a table take most, 112 MiB."""
_ROWS = 200
_MOST_BYTES = 1_000_000
"""Of the HTML: 64 kB of a table are 0.7 MB. References to one long address make a thousand times as much of a text."""
_REST = "<p><em>The rest of the file is not shown.</em></p>"


def body_of(text: str, kind: str, *, is_cut: bool) -> str:
    """Draw a text.

    Args:
        text: What is drawn.
        kind: `MARKDOWN`, or what parts the columns of a table.
        is_cut: Whether there is more of the file.

    Raises:
        ValueError: It becomes too much.
    """
    if kind == MARKDOWN:
        from markdown_it import MarkdownIt  # which tables do without

        markdown = MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"])
        tokens = markdown.parse(text)
        _check(tokens)
        body = str(markdown.renderer.render(tokens, markdown.options, {}))
    else:
        rows = _rows(text, kind)
        is_cut = is_cut or len(rows) > _ROWS
        body = f"<table>{''.join(map(_row, rows[:_ROWS]))}</table>"
    return body + (_REST if is_cut else "")


def _check(tokens: Sequence[Token]) -> None:
    """See that what references repeat fits, before it is written: until then all of them share one address, and one title."""
    if sum(len(str(value)) for block in tokens for one in block.children or () for value in one.attrs.values()) > _MOST_BYTES:
        raise ValueError("what references repeat is too much")


def _rows(text: str, delimiter: str) -> list[list[str]]:
    try:
        return list(islice(csv.reader(io.StringIO(text, newline=""), delimiter=delimiter), _ROWS + 1))
    except csv.Error:  # a field beyond what the module reads
        return [[line] for line in text.splitlines()[: _ROWS + 1]]


def _row(fields: list[str]) -> str:
    return f"<tr>{''.join(f'<td>{escape(one)}</td>' for one in fields)}</tr>"


def main() -> None:
    """Draw what comes in, within bounds, behind whatever else the machine has to do."""
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
    os.nice(10)
    kind, is_cut = sys.argv[1:]
    text = sys.stdin.buffer.read().decode("utf-8", "replace")
    body = body_of(text, kind, is_cut=is_cut == "cut").encode()
    if len(body) > _MOST_BYTES:
        sys.exit(1)
    sys.stdout.buffer.write(body)


if __name__ == "__main__":
    main()
