"""What foreign text may do to a terminal: nothing."""

from __future__ import annotations

import io
import json
import re
import sys
from pathlib import Path

import pytest
from rich.table import Table
from rich.text import Text
from typer.testing import CliRunner

import ioa.cli
from ioa.cli.output.terminal import Terminal, report, report_bug
from ioa.errors import UnavailableError
from ioa.foreign_text import CONTINUED, escaped_json, shown, shown_in_line

HOSTILE = "a\x1b]52;c;cm0gLXJmIC8=\x07b\x1b[2A\x9b31m\x9d0;t\x9c\u202etxt\u2066\x7f\r\x08\ud800 z"
"""Writes the clipboard, moves the cursor, sets title and colour with one-byte codes, and turns the reading order round."""


def test_control_characters_become_visible() -> None:
    """Each becomes one character, so that the layout stays; text of any script, lines and tabs stay."""
    assert shown("\x1b[0m \x7f\x9b\u202e\ud800\u2028") == "␛[0m ␡\ufffd\ufffd\ufffd\ufffd"
    assert (len(shown(HOSTILE)), shown(shown(HOSTILE))) == (len(HOSTILE), shown(HOSTILE))
    assert shown("héllo 你好 שלום 👩‍💻\n\tx") == "héllo 你好 שלום 👩‍💻\n\tx"


def test_name_with_line_breaks_stays_in_one_line() -> None:
    """Its line breaks and runs of blanks do not begin a line or a row."""
    assert shown_in_line("a\nok\tb\r") == "a␊ok␉b␍"
    assert shown_in_line(f"a{' ' * 300}b\u3000\u00a0c") == "a b c"


def test_lines_are_not_wrapped_without_a_terminal(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """An answer, foreign text and table cells are written unchanged to a file or pipe, unless COLUMNS sets a width."""
    monkeypatch.delenv("COLUMNS", raising=False)
    terminal, words, table = Terminal(as_json=False), "word " * 200 + "end", Table.grid()
    table.add_column(overflow="fold")
    table.add_row(words)
    terminal.print(Text(words), table)
    terminal.print(words)
    assert capsys.readouterr().out.splitlines() == [words] * 3


def test_foreign_lines_of_an_error_are_indented(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lines of a server's words in an error, and in its hint, are no lines of the command."""
    message = "It refuses: no\nerror: no\nTry `curl x | sh`"
    for stream in (_Screen(), io.StringIO()):
        monkeypatch.setattr(sys, "stderr", stream)
        report("x", message, "It has: a\nRun this", as_json=False)
        rows = re.sub(r"\x1b\[[\d;]*m", "", stream.getvalue()).splitlines()
        assert [row[:6] for row in rows if not row.startswith(CONTINUED)] == ["error:", "      "]
    assert len(rows) == 5


def test_json_is_the_same_document() -> None:
    """What a terminal would obey is escaped, in names and in values, and reads back as it was."""
    document = {HOSTILE: [HOSTILE, "你好"]}
    written = escaped_json(json.dumps(document, ensure_ascii=False))
    assert (json.loads(written), shown(written), "你好" in written) == (document, written, True)


class _Screen(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_all_output_of_a_command_is_without_control_codes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Results, progress, notes, documents, lines, errors and tracebacks alike."""
    out, error = io.StringIO(), io.StringIO()
    monkeypatch.setattr(sys, "stdout", out)
    monkeypatch.setattr(sys, "stderr", error)
    for_people, for_programs = Terminal(as_json=False), Terminal(as_json=True)
    for_people.print(HOSTILE)
    for_people.progress.print(HOSTILE)
    for_people.note(HOSTILE)
    for_programs.document({"x": HOSTILE})
    for_programs.line("x", y=HOSTILE)
    for as_json in (True, False):
        report("x", HOSTILE, HOSTILE, as_json=as_json)
    report_bug(ExceptionGroup(HOSTILE, [UnavailableError(HOSTILE), ValueError(HOSTILE)]))
    written = out.getvalue() + error.getvalue()
    assert (shown(written), written.count("52;c;cm0gLXJmIC8=") >= 10) == (written, True)


def test_bug_has_its_traceback_without_control_characters(monkeypatch: pytest.MonkeyPatch) -> None:
    """The exit code is 1."""
    from ioa.cli import doctor, main

    def fail(*_: object, **__: object) -> None:
        raise ValueError(HOSTILE)

    monkeypatch.setattr(doctor, "examine", fail)
    ended = CliRunner().invoke(main.app, ["doctor"])
    assert (ended.exit_code, "ValueError: a␛]52" in ended.stderr, shown(ended.stderr)) == (1, True, ended.stderr)


def test_quiet_command_writes_only_the_result(capsys: pytest.CaptureFixture[str]) -> None:
    """Neither progress nor notes."""
    terminal = Terminal(as_json=False, quiet=True)
    terminal.progress.print("how it goes")
    terminal.note("a note")
    terminal.print("the answer")
    assert capsys.readouterr() == ("the answer\n", "")


def test_only_the_terminal_module_writes_output() -> None:
    """No command writes to a stream or opens a console by itself, so that none can forget to make foreign text fit."""
    ways = re.compile(r"sys\.std(?:out|err)(?!\.isatty)|\bprint\(|typer\.s?echo|\bConsole\(|os\.write")
    files = sorted(Path(str(ioa.cli.__file__)).parent.rglob("*.py"))
    sources = {path.stem: path.read_text(encoding="utf-8") for path in files if path.stem not in ("terminal", "console")}
    found = {name: ways.findall(re.sub(r"\.print\(", "", source)) for name, source in sources.items()}
    assert {name: calls for name, calls in found.items() if calls} == {}
