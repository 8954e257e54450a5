"""Drawing on a stream for people, whatever stands in what is drawn."""

from __future__ import annotations

import io
import os
from collections.abc import Iterable
from typing import IO

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.text import Text

from ioa.foreign_text import CONTINUED, shown

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
