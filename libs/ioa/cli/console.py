"""Rich output on a stream: no control code of foreign text reaches the terminal. And layouts that several commands share."""

from __future__ import annotations

import io
import os
import zlib
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import IO

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from ioa.client.transcript import CONTROL_PLANE
from ioa.foreign_text import CONTINUED, shown

_COLOURS = ("cyan", "magenta", "blue", "yellow", "green", "bright_cyan", "bright_magenta", "bright_blue")
_PLAIN_WIDTH = 10_000
"""Columns of tables where the output is no terminal: cells are not wrapped."""


class ShowingConsole(Console):
    """Writes no control codes but its own: those in a text are shown, and a text links nowhere."""

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Make a text fit before it is laid out, and what comes of anything else after it."""
        if isinstance(renderable, Text) and (fit := shown(renderable.plain)) != renderable.plain:
            renderable = renderable.copy()
            renderable.plain = fit
        for text, style, control in super().render(renderable, options):
            if control:
                yield Segment(text, style, control)
            else:
                yield Segment(shown(text), style.update_link(None) if style and style.link else style)


def create_console(stream: IO[str]) -> Console:
    """Open a stream for rich output: coloured on a terminal, plain text without control codes elsewhere."""
    width = None if stream.isatty() or "COLUMNS" in os.environ else _PLAIN_WIDTH
    return ShowingConsole(file=stream, width=width, highlight=False, emoji=False, markup=False)


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


MEASURE = create_console(io.StringIO())
"""Rich measures text by a console; nothing is written to this one."""


def marked(text: Text, width: int) -> Text:
    """Lay out lines in which words of others stand, in `width` columns: each further row of one is marked, as by `continued`.

    A word is folded where it is longer than a row, and blanks at the end of a row are dropped.
    """
    text, rows = text.copy(), list[Text]()
    text.plain = shown(text.plain)
    for line in text.split(allow_blank=True):
        line.expand_tabs()
        room = width if line.cell_len <= width else max(width - cell_len(CONTINUED), 1)
        first, *more = line.wrap(MEASURE, room)
        rows += [first, *(Text.assemble((CONTINUED, text.style), row) for row in more)]
    return Text("\n").join(rows)
