"""Where a command writes: words for people, JSON for programs. Nothing else in `ioa.cli` writes to a stream.

So what a terminal would obey is made visible here, wherever it came from, and no command can forget it.
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
    from rich.text import Text


class Output:
    """One stream of a command, for people.

    Args:
        stream: Where to.
        silent: Whether nothing is to be written: programs get JSON, and some do not want to be told how it goes.
    """

    def __init__(self, stream: IO[str], *, silent: bool) -> None:
        self.silent = silent
        self._stream = stream
        self._console: Console | None = None

    @property
    def console(self) -> Console:
        """What draws on the stream."""
        if self._console is None:
            from ioa.cli.console import create_console

            self._console = create_console(self._stream)
        return self._console

    @property
    def is_live(self) -> bool:
        """Whether somebody looks at a terminal that can be redrawn."""
        return not self.silent and self.console.is_terminal and not self.console.is_dumb_terminal

    def print(self, *what: RenderableType, soft_wrap: bool = False) -> None:
        """Write renderables. Lines are wrapped only on a terminal, and there not with `soft_wrap`, so that they can be copied."""
        if self.silent:
            return
        if self.console.is_terminal:
            for one in what:
                self.console.print(one, soft_wrap=soft_wrap)
            return
        from rich.text import Text

        with self.console.capture() as captured:
            for one in what:
                self.console.print(one, soft_wrap=soft_wrap or isinstance(one, str | Text))
        # Rich pads cells with spaces, which are visible in a file.
        self._stream.write("".join(f"{line.rstrip()}\n" for line in captured.get().splitlines()))
        self._stream.flush()

    def tell(self, text: Text | str, *, soft_wrap: bool = False) -> None:
        """Write lines that contain foreign text. On a terminal each further row of a line is marked, so that none forges a line.

        The caller applies `continued` or `shown_in_line` to the foreign text.
        """
        if self.silent:
            return
        from rich.text import Text

        from ioa.cli.console import marked

        lines = Text(text) if isinstance(text, str) else text
        self.print(marked(lines, self.console.width) if self.console.is_terminal else lines, soft_wrap=soft_wrap)


class Terminal:
    """Standard output, which holds what was asked for and nothing else, and standard error, which tells how it goes.

    Args:
        as_json: A program reads standard output: it gets JSON, and standard error only errors.
        quiet: Nobody wants to know how it goes.
    """

    def __init__(self, *, as_json: bool, quiet: bool = False) -> None:
        self.as_json = as_json
        self.quiet = quiet
        self.result = Output(sys.stdout, silent=as_json)
        self.progress = Output(sys.stderr, silent=as_json or quiet)

    def print(self, *what: RenderableType) -> None:
        """Show people what they asked for; programs do not get it."""
        self.result.print(*what)

    def tell(self, text: Text | str) -> None:
        """Show people lines in which words of others stand; programs do not get them."""
        self.result.tell(text)

    def document(self, value: Any) -> None:
        """Write the one JSON document of a command that shows or lists something."""
        write_json(sys.stdout, value, indent=2)

    def show(self, value: Any, *what: RenderableType) -> None:
        """Write a JSON document for a program, or renderables for a person."""
        if self.as_json:
            self.document(value)
        else:
            self.print(*what)

    def line(self, event: str, **fields: Any) -> None:
        """Write one JSON line of a command that goes on."""
        write_json(sys.stdout, {"event": event, **fields})
        sys.stdout.flush()

    def note(self, text: str) -> None:
        """Say something of our own beside the result, on standard error; programs do not get it."""
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
    """Read what is piped into the command; bytes that are no UTF-8 stand as replacement characters."""
    return sys.stdin.buffer.read().decode("utf-8", errors="replace")


def report(code: str, message: str, hint: str, *, as_json: bool) -> None:
    """Say on standard error what went wrong and what to do, in words or as one JSON object."""
    if as_json:
        write_json(sys.stderr, {"code": code, "message": message, "hint": hint})
        return
    from rich.text import Text

    told = Output(sys.stderr, silent=False)
    told.tell(Text.assemble(("error: ", "bold red"), continued(message)), soft_wrap=True)
    if hint:
        told.tell(Text(f"       {continued(hint)}", style="dim"), soft_wrap=True)


def report_bug(error: BaseException) -> None:
    """Write the whole traceback of an error that nobody foresaw."""
    from ioa.telemetry.logs import tell_traceback  # here, so that help comes at once

    tell_traceback(error)


def write_version() -> None:
    """Write the version that is installed."""
    sys.stdout.write(f"ioa {installed_version()}\n")
