"""The view of a conversation: one line per event, and on a terminal a footer with the open tasks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from types import TracebackType
from typing import Self

from rich.console import Group, RenderableType
from rich.live import Live
from rich.spinner import Spinner
from rich.table import Table
from rich.text import Text

from ioa.cli.output.console import create_table, speaker_style
from ioa.cli.output.terminal import Output, Terminal
from ioa.client.documents import EntryDocument, ProgressDocument, told
from ioa.client.transcript import CONCLUSION, Line, TaskStatus, Tone, Transcript
from ioa.foreign_text import shown, shown_in_line
from ioa.group.events import Said
from ioa.ports.group_log import StoredEntry

_STYLES = {Tone.PLAIN: "", Tone.QUIET: "dim", Tone.GOOD: "", Tone.BAD: "red"}
_MARKS = {Tone.PLAIN: "", Tone.QUIET: "", Tone.GOOD: "green", Tone.BAD: "red"}
_SPEAKER_WIDTH = 16
_ACT_WIDTH = 11
_CLOCK_WIDTH = 7
_MAX_FOOTER_TASKS = 8
_DRAFT_CHARS = 80
_MAX_EXCERPT_LINE_CHARS = 400


class ConversationView:
    """Show entries as they come. Use it as a context manager: on a terminal it keeps a footer while it is open.

    Args:
        terminal: The output. With JSON each entry is a line.
        beside: Write to standard error, because standard output contains the result.
        excerpt: Maximum number of lines per message; None shows all lines.
    """

    def __init__(self, terminal: Terminal, *, beside: bool = False, excerpt: int | None = 4) -> None:
        self._terminal = terminal
        self._output: Output = terminal.progress if beside else terminal.result
        self._started: datetime | None = None
        self._excerpt = excerpt
        self._beside = beside
        self._live: Live | None = None
        self._waiting = ""
        self.transcript = Transcript()

    def __enter__(self) -> Self:
        if self._output.is_live:
            self._live = Live(
                console=self._output.console,
                get_renderable=self._footer,
                refresh_per_second=8,
                transient=True,
                redirect_stdout=False,
            )
            self._live.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._live is not None:
            self._live.stop()
            self._live = None

    def wait_for(self, what: str) -> None:
        """Set the text of the footer while nothing happens."""
        self._waiting = what

    def refresh(self) -> None:
        """Draw the footer now."""
        if self._live is not None:
            self._live.refresh()

    def show(self, news: StoredEntry | Said) -> None:
        """Show the next entry, or a report of progress that is none."""
        is_shown = self._terminal.as_json and not (self._beside and self._terminal.quiet)
        if isinstance(news, Said):
            lines = self.transcript.hear(news)
            if is_shown:
                self._terminal.line("progress", **told(ProgressDocument.of(news)))
        else:
            lines, self._waiting = self.transcript.read(news), ""
            if is_shown:
                self._terminal.line("entry", **told(EntryDocument.of(news)))
        if self._output.silent:
            return
        for line in lines:
            self._started = self._started or line.at
            if self._beside and line.act == CONCLUSION and line.depth == 0:
                line = replace(line, text="the team's answer:", files=())
            self._output.print(line_row(line, self._started, self._excerpt))

    def _footer(self) -> RenderableType:
        tasks = self.transcript.open_tasks()
        more = [Text(f"and {len(tasks) - _MAX_FOOTER_TASKS} more tasks", style="dim")] if len(tasks) > _MAX_FOOTER_TASKS else []
        running = [task_table(tasks[:_MAX_FOOTER_TASKS], datetime.now(UTC))] if tasks else []
        return Group(Text(), Spinner("dots", Text(self._waiting or self._floor(), style="dim"), style="cyan"), *running, *more)

    def _floor(self) -> str:
        holders = [state.floor_holder for state in self.transcript.states.values() if state.floor_holder]
        return f"{', '.join(holders)} may speak" if holders else "waiting"


def read_transcript(entries: Iterable[StoredEntry]) -> Transcript:
    """Return the transcript of these entries."""
    transcript = Transcript()
    for stored in entries:
        transcript.read(stored)
    return transcript


def line_row(line: Line, started: datetime, excerpt: int | None = None) -> Table:
    """Format a line as a row: time, speaker, act, and the text to the right; nested teams are indented."""
    bars = "│ " * line.depth
    row = Table.grid(padding=(0, 2, 0, 0))
    for width in (_CLOCK_WIDTH, len(bars) + _SPEAKER_WIDTH, _ACT_WIDTH):
        row.add_column(width=width, no_wrap=True, overflow="ellipsis")
    row.add_column(overflow="fold")
    body = Text(shown(_excerpt(line.text, excerpt)), style=_STYLES[line.tone])
    if line.files:
        names = ", ".join(shown_in_line(file.name) for file in line.files)
        body.append(f"{chr(10) if line.text else ''}{names}", style="green")
    speaker = Text.assemble((bars, "dim"), (line.speaker, speaker_style(line.speaker)))
    row.add_row(Text(f"{clock(started, line.at):>7}", "dim"), speaker, Text(line.act, _MARKS[line.tone] or "dim"), body)
    return row


def task_table(tasks: Sequence[TaskStatus], now: datetime | None = None) -> RenderableType:
    """Return a table of tasks with their status; with `now`, each task takes one row, with the seconds so far and its progress."""
    styles = {"done": "green", "failed": "red", "cancelled": "red", "rejected": "red", "open": "yellow", "waiting": "dim"}
    rows = []
    for task in tasks:
        end = task.ended_at or now
        seconds = f"{(end - task.started_at).total_seconds():.1f}" if task.started_at and end else ""
        assignee, status = (
            Text(task.assignee, style=speaker_style(task.assignee)),
            Text(task.status, style=styles.get(task.status, "")),
        )
        if now is None:
            what = Text(_excerpt(task.task_desc, 2))
            detail = f"\n{_excerpt(task.detail, 2)}" if task.detail else ""
        else:
            what = Text(in_one_row(task.draft[-_DRAFT_CHARS:] or task.task_desc))
            part = f" {task.fraction:.0%}" if task.fraction is not None else ""
            detail = f"{part} {in_one_row(task.detail)}"
        rows.append((f"{'│ ' * task.depth}{task.task_id}", assignee, status, seconds, what.append(detail, style="dim")))
    heads = ("task", "assignee", "status", "seconds", "what")
    return create_table(heads, rows, numbers=("seconds",), folded=() if now else ("what",))


def in_one_row(text: str) -> str:
    """Return the beginning of a text as one line."""
    return shown_in_line(_row(text.strip()))


def clock(started: datetime, at: datetime) -> str:
    """Write a time as seconds since the start, as minutes and seconds when it gets long."""
    seconds = max(0.0, (at - started).total_seconds())
    return f"{seconds:.1f}s" if seconds < 60 else f"{int(seconds // 60)}:{int(seconds % 60):02d}"


def _row(line: str) -> str:
    more = len(line) - _MAX_EXCERPT_LINE_CHARS
    return f"{line[:_MAX_EXCERPT_LINE_CHARS]}… {more:,} more characters" if more > 0 else line


def _excerpt(text: str, lines: int | None) -> str:
    """Return the first lines that are not blank, each cut, and the number of lines that are left out."""
    if lines is None:
        return text
    rows = [line.rstrip() for line in text.split("\n") if line.strip()]
    more = [f"… {len(rows) - lines} more lines"] if len(rows) > lines else []
    return "\n".join([*map(_row, rows[:lines]), *more])
