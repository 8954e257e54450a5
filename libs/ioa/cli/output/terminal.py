"""Output of a command: text for people, JSON for programs. No other module of `ioa.cli` writes to a stream.

Control characters of foreign text are made visible here, so that no command can omit it. A command marks lines of
foreign text by `continued`, or writes it in one line by `shown_in_line`.
"""

from __future__ import annotations

import io
import json
import sys
from typing import IO, TYPE_CHECKING, Any, TextIO

from ioa.distribution import installed_version
from ioa.foreign_text import continued, escaped_json, shown

if TYPE_CHECKING:
    from rich.console import Console, RenderableType


class Output:
    """One stream of a command, for people.

    Args:
        stream: The stream.
        silent: Write nothing, because a program reads the output or the user wants no progress.
    """

    def __init__(self, stream: IO[str], *, silent: bool) -> None:
        self.silent = silent
        self._stream = stream
        self._console: Console | None = None

    @property
    def console(self) -> Console:
        """The console that draws on the stream."""
        if self._console is None:
            from ioa.cli.output.showing_console import create_console

            self._console = create_console(self._stream)
        return self._console

    @property
    def is_live(self) -> bool:
        """Whether the stream is a terminal that can be redrawn."""
        return not self.silent and self.console.is_terminal and not self.console.is_dumb_terminal

    def print(self, *parts: RenderableType, soft_wrap: bool = False) -> None:
        """Write renderables. Lines are wrapped only on a terminal, and not with `soft_wrap`, so that users can copy them."""
        if self.silent:
            return
        if self.console.is_terminal:
            for part in parts:
                self.console.print(part, soft_wrap=soft_wrap)
            return
        from rich.text import Text

        with self.console.capture() as captured:
            for part in parts:
                self.console.print(part, soft_wrap=soft_wrap or isinstance(part, str | Text))
        # Rich pads cells with spaces, which are visible in a file.
        self._stream.write("".join(f"{line.rstrip()}\n" for line in captured.get().splitlines()))
        self._stream.flush()


class Terminal:
    """Standard output, which contains only the result, and standard error, which contains the progress.

    Args:
        as_json: A program reads standard output: it gets JSON, and standard error contains only errors.
        quiet: Write no progress.
    """

    def __init__(self, *, as_json: bool, quiet: bool = False) -> None:
        self.as_json = as_json
        self.quiet = quiet
        self.result = Output(sys.stdout, silent=as_json)
        self.progress = Output(sys.stderr, silent=as_json or quiet)
        self.print = self.result.print

    def document(self, value: Any) -> None:
        """Write the JSON document of a command."""
        write_json(sys.stdout, value, indent=2)

    def show(self, value: Any, *parts: RenderableType) -> None:
        """Write a JSON document for a program, or renderables for people."""
        if self.as_json:
            self.document(value)
        self.print(*parts)

    def line(self, event: str, **fields: Any) -> None:
        """Write one JSON line of a command that continues."""
        write_json(sys.stdout, {"event": event, **fields})
        sys.stdout.flush()

    def note(self, text: str) -> None:
        """Write a note on standard error, for people."""
        if not self.progress.silent:
            sys.stderr.write(shown(text) + "\n")
            sys.stderr.flush()


def write_json(stream: TextIO, value: Any, indent: int | None = None) -> None:
    """Write a JSON document. Characters that the encoding of the stream lacks are escaped as JSON escapes them."""
    text = escaped_json(json.dumps(value, indent=indent, ensure_ascii=_lacks_characters(stream)))
    stream.write(f"{text}\n")


def _lacks_characters(stream: TextIO) -> bool:
    return not (stream.encoding or "utf-8").lower().startswith("utf")


def escape_unprintable() -> None:
    """Escape characters that the encoding of a terminal or pipe lacks, instead of raising an error."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper) and _lacks_characters(stream):
            stream.reconfigure(errors="backslashreplace")


def read_stdin() -> str:
    """Read standard input as UTF-8; invalid bytes become replacement characters."""
    return sys.stdin.buffer.read().decode("utf-8", errors="replace")


def report(code: str, message: str, hint: str, *, as_json: bool) -> None:
    """Write an error and its fix on standard error, in words or as one JSON object."""
    if as_json:
        write_json(sys.stderr, {"code": code, "message": message, "hint": hint})
        return
    from rich.text import Text

    output = Output(sys.stderr, silent=False)
    output.print(Text.assemble(("error: ", "bold red"), continued(message)), soft_wrap=True)
    if hint:
        output.print(Text(f"       {continued(hint)}", style="dim"), soft_wrap=True)


def report_bug(error: BaseException) -> None:
    """Write the traceback of an unexpected error."""
    from ioa.telemetry.logs import tell_traceback  # here, so that help comes at once

    tell_traceback(error)


def write_version() -> None:
    """Write the installed version."""
    sys.stdout.write(f"ioa {installed_version()}\n")
