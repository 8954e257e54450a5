"""Where a command writes: words for people, JSON for programs."""

from __future__ import annotations

import json
import os
import sys
from typing import IO, TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

_PLAIN_WIDTH = 120
"""How wide lines are when nobody looks at a terminal."""


def create_console(stream: IO[str]) -> Console:
    """Open a stream for rich output: coloured on a terminal, plain text without control codes elsewhere."""
    from rich.console import Console

    width = None if stream.isatty() or "COLUMNS" in os.environ else _PLAIN_WIDTH
    return Console(file=stream, width=width, highlight=False, emoji=False, markup=False)


class Terminal:
    """Standard output and standard error of one command. What a program reads is alone on standard output."""

    def __init__(self, *, as_json: bool) -> None:
        self.as_json = as_json
        self._console: Console | None = None

    @property
    def console(self) -> Console:
        """Standard output for people."""
        if self._console is None:
            self._console = create_console(sys.stdout)
        return self._console

    @property
    def is_live(self) -> bool:
        """Whether somebody looks at a terminal that can be redrawn."""
        return not self.as_json and self.console.is_terminal and not self.console.is_dumb_terminal

    def print(self, *what: RenderableType) -> None:
        """Show something to people; programs do not get it."""
        if self.as_json:
            return
        if self.console.is_terminal:
            for one in what:
                self.console.print(one)
            return
        with self.console.capture() as captured:
            for one in what:
                self.console.print(one)
        # Rich fills up columns with spaces, which only a terminal swallows.
        sys.stdout.write("".join(f"{line.rstrip()}\n" for line in captured.get().splitlines()))
        sys.stdout.flush()

    def document(self, value: Any) -> None:
        """Write the one JSON document of a command that shows or lists something."""
        sys.stdout.write(json.dumps(value, indent=2, ensure_ascii=False) + "\n")

    def line(self, event: str, **fields: Any) -> None:
        """Write one JSON line of a command that goes on."""
        sys.stdout.write(json.dumps({"event": event, **fields}, ensure_ascii=False) + "\n")
        sys.stdout.flush()

    def note(self, text: str) -> None:
        """Say something beside the result, on standard error; programs do not get it."""
        if not self.as_json:
            sys.stderr.write(text + "\n")
            sys.stderr.flush()
