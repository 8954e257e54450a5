"""Rich output on a stream: no control code of foreign text reaches the terminal."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import IO

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

from ioa.foreign_text import shown

_PLAIN_WIDTH = 10_000
"""Columns of tables where the output is no terminal: cells are not wrapped."""


class ShowingConsole(Console):
    """A console that writes no control codes of a text, but visible characters instead, and no links of a text."""

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Replace control codes of texts in rendered output."""
        for text, style, control in super().render(renderable, options):
            if control:
                yield Segment(text, style, control)
            else:
                yield Segment(shown(text), style.update_link(None) if style and style.link else style)


def create_console(stream: IO[str]) -> Console:
    """Open a stream for rich output: coloured on a terminal, plain text without control codes elsewhere."""
    width = None if stream.isatty() or "COLUMNS" in os.environ else _PLAIN_WIDTH
    return ShowingConsole(file=stream, width=width, highlight=False, emoji=False, markup=False)
