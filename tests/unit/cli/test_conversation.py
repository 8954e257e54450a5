"""How lines are laid out."""

from __future__ import annotations

import io
import json
import re
import sys
from datetime import timedelta
from typing import Any

import pytest

from ioa.cli.output.conversation_output import ConversationView, clock, line_row
from ioa.cli.output.showing_console import create_console
from ioa.cli.output.terminal import Terminal
from ioa.client.transcript import Line
from tests.unit.cli.logs import log_of
from tests.unit.group.scenario import START, launched


def _line(**changes: Any) -> Line:
    values: dict[str, Any] = {"speaker": "ada", "act": "discussion", "text": "one two three", "at": START + timedelta(seconds=1.26)}
    return Line(**values | changes)


def _rows(width: int, excerpt: int | None = None, **changes: Any) -> list[str]:
    console = create_console(stream := io.StringIO())
    console.width = width  # whatever COLUMNS is
    console.print(line_row(_line(**changes), START, excerpt))
    return list(map(str.rstrip, stream.getvalue().splitlines()))


def test_text_stays_beside_its_speaker() -> None:
    """A long text continues below itself; each level of nesting is a bar before the speaker."""
    first, *more = _rows(70, text="word " * 10)
    assert first.startswith("   1.3s  ada               discussion   word")
    assert more and all(row.startswith(" " * 40 + "word") for row in more)
    assert _rows(120, depth=2)[0].startswith("   1.3s  │ │ ada")


def test_long_message_is_cut_to_an_excerpt() -> None:
    """An excerpt drops empty lines, cuts long lines, and names how much is left out; without an excerpt the text is whole."""
    assert [row[40:] for row in _rows(120, 2, text="1\n\n2\n3\n4\n5")] == ["1", "2", "… 3 more lines"]
    [row] = _rows(1_000, 4, text="x" * 5_800)
    assert row.endswith("x… 5,400 more characters")
    assert _rows(10_000, text="x" * 5_800)[0].endswith("x" * 5_800)


@pytest.mark.parametrize(("seconds", "shown"), [(0, "0.0s"), (61, "1:01"), (3_700, "61:40")])
def test_times_are_short(seconds: float, shown: str) -> None:
    """Seconds below a minute, minutes above."""
    assert clock(START, START + timedelta(seconds=seconds)) == shown


def test_pipe_gets_plain_lines_and_a_program_objects(capsys: pytest.CaptureFixture[str]) -> None:
    """Without a terminal there is no footer, no control code and no trailing space; with JSON each entry is one line."""
    for as_json in (False, True):
        with ConversationView(Terminal(as_json=as_json)) as view:
            for stored in log_of(launched("ada", "bob").says("ada", to="bob")):
                view.show(stored)
    first, second, *documents = capsys.readouterr().out.splitlines()
    assert first == "   0.0s  ada               team         leads a team with bob"
    assert second == "   0.0s  ada               discussion   to bob: Point 1."
    lines = [json.loads(line) for line in documents]
    assert [(line["event"], line["type"]) for line in lines] == [("entry", "group_launched"), ("entry", "DISCUSSION")]


def _screen(stream: io.StringIO) -> str:
    """Return the output without control codes."""
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", stream.getvalue())


class _TerminalStream(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_terminal_footer_names_open_tasks_until_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a terminal the footer names the open tasks, and is gone at the end."""
    stream = _TerminalStream()
    monkeypatch.setattr(sys, "stdout", stream)
    monkeypatch.setenv("TERM", "xterm-256color")
    with ConversationView(Terminal(as_json=False)) as view:
        view.wait_for("waiting for an agent to take the goal")
        for stored in log_of(launched("ada", "bob").assigns_and_waits("ada", "t1-1:bob")):
            view.show(stored)
        view.refresh()
        during = _screen(stream)
    after = _screen(stream)
    assert "t1-1 → bob: do t1-1" in during and "t1-1  bob       open" in during
    assert "seconds" not in after.rpartition("t1-1  bob       open")[2]
    assert stream.getvalue().count("\x1b[?25l") == stream.getvalue().count("\x1b[?25h") == 1
