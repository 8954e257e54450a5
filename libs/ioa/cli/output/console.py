"""Layouts that several commands share: tables, rows, sizes and times."""

from __future__ import annotations

import zlib
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import TypeVar

from pydantic import BaseModel
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from ioa.cli.output.terminal import Terminal
from ioa.client.documents import told
from ioa.client.transcript import CONTROL_PLANE
from ioa.group.requests import GoalList, GroupList

R = TypeVar("R")
P = TypeVar("P", GoalList, GroupList)

_COLOURS = ("cyan", "magenta", "blue", "yellow", "green", "bright_cyan", "bright_magenta", "bright_blue")
_PAGE = 200
"""Maximum number of rows of a request."""


def create_table(
    heads: Sequence[str], rows: Iterable[Sequence[str | Text]], *, numbers: Sequence[str] = (), folded: Sequence[str] = ()
) -> Table:
    """Return a table of rows with column heads.

    Args:
        heads: The heads; without any, the table has none.
        rows: The cells of each row.
        numbers: Heads whose columns are right-aligned.
        folded: Heads whose columns are folded on a narrow terminal.
    """
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim", show_header=bool(heads))
    for head in heads:
        folds = head in folded
        table.add_column(
            head, justify="right" if head in numbers else "left", no_wrap=not folds, overflow="fold" if folds else "ellipsis"
        )
    for row in rows:
        table.add_row(*row)
    return table


def create_fields(fields: Mapping[str, str]) -> Table:
    """Return a table of the fields that have a value, one field per row."""
    return create_table((), [(Text(name, style="dim"), value) for name, value in fields.items() if value])


def speaker_style(speaker: str) -> str:
    """Return the colour of a speaker, which is always the same."""
    return "dim" if speaker == CONTROL_PLANE else _COLOURS[zlib.crc32(speaker.encode()) % len(_COLOURS)]


def local_time(at: datetime | None) -> str:
    """Format a time by this machine's clock."""
    return "" if at is None else at.replace(tzinfo=at.tzinfo or UTC).astimezone().strftime("%Y-%m-%d %H:%M:%S")


def size(count: int) -> str:
    """Format a number of bytes."""
    if count < 1_000:
        return f"{count} B"
    return f"{count / 1_000:.1f} kB" if count < 1_000_000 else f"{count / 1_000_000:.1f} MB"


async def list_rows(
    terminal: Terminal,
    read: Callable[..., Awaitable[P]],
    rows_of: Callable[[P], Sequence[R]],
    document: Callable[[R], BaseModel],
    render: Callable[[Sequence[R]], Iterable[RenderableType]],
    *,
    limit: int,
    nothing: str,
) -> None:
    """List the first rows, which are read in pages.

    Args:
        terminal: The output.
        read: Return a page, given `limit` and `before`, the cursor of the page.
        rows_of: Return the rows of a page.
        document: Describe a row as JSON.
        render: Return renderables of the rows.
        limit: Maximum number of rows.
        nothing: Text for an empty list.
    """
    page: P = await read(limit=min(limit, _PAGE))
    rows = [*rows_of(page)]
    while page.before is not None and len(rows) < limit:
        page = await read(limit=min(limit - len(rows), _PAGE), before=page.before)
        rows += rows_of(page)
    terminal.show([told(document(row)) for row in rows], *(render(rows) if rows else [nothing]))
    if page.before is not None:
        terminal.note("There are more: --limit N lists more of them.")
