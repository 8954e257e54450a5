"""How lines are laid out."""

from __future__ import annotations

import io
import json
import re
import sys
from datetime import timedelta
from typing import Any

import pytest

from ioa.cli.conversation import ConversationView, clock, line_text
from ioa.cli.goals import goal_table
from ioa.cli.terminal import Terminal
from ioa.client.transcript import Line, Tone
from ioa.group.events import Said
from ioa.group.goal_lists import GoalStatus
from ioa.protocol.goals import Goal, GoalRecord
from ioa.protocol.ids import CommId, GoalId, TaskId
from ioa.protocol.messages import InformTaskProgress
from tests.unit.cli.logs import log_of
from tests.unit.group.scenario import START, launched


def _line(**changes: Any) -> Line:
    values: dict[str, Any] = {
        "seq": 1,
        "comm_id": CommId("room"),
        "depth": 0,
        "at": START + timedelta(seconds=1.26),
        "speaker": "ada",
        "act": "discussion",
        "text": "one two three",
        "tone": Tone.PLAIN,
    }
    return Line(**values | changes)


def test_text_stays_beside_its_speaker() -> None:
    """A text that is too long goes on below itself, not below the speaker."""
    shown = line_text(_line(text="word " * 10), START, 70).plain.splitlines()
    assert shown[0].startswith("   1.3s  ada               discussion   word")
    assert all(row.startswith(" " * 40 + "word") for row in shown[1:]) and len(shown) > 1


def test_nested_teams_are_indented_on_every_row() -> None:
    """Each level of nesting is a bar on every row of the line."""
    shown = line_text(_line(depth=2, text="one\ntwo"), START, 120).plain.splitlines()
    assert (shown[0].startswith("   1.3s  │ │ ada"), shown[1].startswith("         │ │ ")) == (True, True)


def test_a_long_message_is_cut_to_an_excerpt() -> None:
    """An excerpt drops empty lines and says how much is left out."""
    shown = line_text(_line(text="1\n\n2\n3\n4\n5"), START, 120, excerpt=2).plain.splitlines()
    assert [row[40:] for row in shown] == ["1", "2", "… 3 more lines"]


def test_a_long_line_is_cut_in_an_excerpt() -> None:
    """A result of one long line does not fill the screen, and says how much is left out; without an excerpt it is whole."""
    text = "x" * 5_800
    shown = line_text(_line(text=text), START, 1_000, excerpt=4).plain
    assert shown.endswith("x… 5,400 more characters") and shown.count("\n") == 0
    assert line_text(_line(text=text), START, 10_000).plain.endswith(text)


@pytest.mark.parametrize(("seconds", "shown"), [(0, "0.0s"), (59.94, "59.9s"), (61, "1:01"), (3_700, "61:40"), (-1, "0.0s")])
def test_times_are_short(seconds: float, shown: str) -> None:
    """Seconds below a minute, minutes above; a clock that runs behind gives zero."""
    assert clock(START, START + timedelta(seconds=seconds)) == shown


def test_a_pipe_gets_plain_lines(capsys: pytest.CaptureFixture[str]) -> None:
    """Without a terminal there is no footer, no control code and no trailing space."""
    with ConversationView(Terminal(as_json=False)) as view:
        for stored in log_of(launched("ada", "bob").says("ada", to="bob")):
            view.show(stored)
    assert capsys.readouterr().out.splitlines() == [
        "   0.0s  ada               team         leads a team with bob",
        "   0.0s  ada               discussion   to bob: Point 1.",
    ]


def test_a_program_gets_one_object_for_each_entry(capsys: pytest.CaptureFixture[str]) -> None:
    """With JSON each entry is one line."""
    with ConversationView(Terminal(as_json=True)) as view:
        for stored in log_of(launched("ada", "bob").says("ada", to="bob")):
            view.show(stored)
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [(line["event"], line["type"]) for line in lines] == [("entry", "group_launched"), ("entry", "DISCUSSION")]


def _screen(stream: io.StringIO) -> str:
    """What was written, without control codes."""
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", stream.getvalue())


class _TerminalStream(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_terminal_shows_what_runs_and_cleans_up(monkeypatch: pytest.MonkeyPatch) -> None:
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
    assert (
        "t1-1 → bob: do t1-1" in during,
        "t1-1 bob  do t1-1" in during,
        "t1-1 bob  do t1-1" in after.rpartition("t1-1 bob")[2],
    ) == (
        True,
        True,
        False,
    )
    assert stream.getvalue().count("\x1b[?25l") == stream.getvalue().count("\x1b[?25h") == 1


def _reporting(words: str, view: ConversationView) -> None:
    """Show a task whose assignee reports these words, and writes them."""
    entries = log_of(launched("ada", "bob").assigns_and_waits("ada", "t1-1:bob").progresses("t1-1"))
    report = entries[-1].entry.event
    assert isinstance(report, Said)
    for stored in entries:
        view.show(stored)
    payload = InformTaskProgress(task_id=TaskId("t1-1"), number=2, content=words, draft=words[:4_000])
    view.show(report.model_copy(update={"message": report.message.model_copy(update={"payload": payload})}))


@pytest.mark.parametrize("filled", ["\n\n", " " * 300])
def test_what_an_agent_reports_begins_no_row_of_the_footer(filled: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither how far a task is said to be nor its draft, whatever fills up the row."""
    monkeypatch.setattr(sys, "stdout", stream := _TerminalStream())
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLUMNS", "80")
    with ConversationView(Terminal(as_json=False)) as view:
        _reporting(f"half done{filled}file  report.md", view)
        begun = len(_screen(stream))
        view.refresh()
        footer = [row.rstrip() for row in _screen(stream)[begun:].splitlines() if row.strip()]
    assert ("bob  do t1-1 half done" in footer[0], len(footer), max(map(len, footer)) <= 80) == (True, 2, True)


def test_a_narrow_terminal_holds_a_goal_in_two_lines(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """At 50 columns its id and its status are whole, and what was asked for stands below."""
    monkeypatch.setenv("COLUMNS", "50")
    goal = Goal(goal_id=GoalId("goal-" + "0" * 32), goal="a long\ngoal " * 30)
    terminal = Terminal(as_json=False)
    status = GoalStatus(record=GoalRecord(goal=goal, accepted_at=START, ticket_digest="0" * 64))
    terminal.print(goal_table([status], terminal.result.console.width))
    rows = capsys.readouterr().out.splitlines()
    assert (rows[0], len(rows), len(rows[1]) <= 50, "a long␊goal" in rows[1]) == (f"{goal.goal_id}  waiting", 2, True, True)


@pytest.mark.parametrize("width", [50, 60])
@pytest.mark.parametrize("depth", [0, 1, 2])
def test_a_narrow_transcript_puts_the_text_below_its_speaker(width: int, depth: int) -> None:
    """No row is longer than the terminal, nothing is lost, and each is indented."""
    line = _line(text="words that go on and on " * 5, depth=depth, speaker="a-speaker-of-32-letters-and-more")
    rows = line_text(line, START, width).plain.splitlines()
    assert (max(map(len, rows[1:])) <= width, rows[0].split()[-1], "".join(rows[1:]).count("words")) == (True, "discussion", 5)
    assert all(row.startswith(" " * 9 + "│ " * depth) for row in rows[1:])
