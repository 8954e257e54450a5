"""`ioa team` with no system in reach."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ioa.cli.output.terminal import Terminal
from ioa.cli.teams import check_file, draw, is_file_of_team, read_team, run, show_plan, try_file
from ioa.errors import InvalidInputError
from ioa.ports.meter import Meter
from ioa.protocol.decisions import DecidedBy
from ioa.protocol.teams.team_file import document_of
from ioa.protocol.usage import Usage
from ioa.runtime.exit_code import ExitCode
from tests.unit.protocol.policies import SHIPPED


def test_check_reports_a_summary_or_each_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """In words, or as JSON for programs; a file with errors exits with 2."""
    assert check_file(Terminal(as_json=False), SHIPPED / "debate.toml") is ExitCode.DONE
    assert capsys.readouterr().out == "debate: 3 roles, 2 nodes\n"
    file = tmp_path / "bad.toml"
    file.write_text((SHIPPED / "debate.toml").read_text().replace("max   = 6", "maxi = 6"))
    assert check_file(Terminal(as_json=False), file) is ExitCode.BAD_USE
    assert capsys.readouterr().out == "error: node debate: there is no `maxi`; did you mean `max`?\n"
    assert check_file(Terminal(as_json=True), file) is ExitCode.BAD_USE
    found = {"kind": "error", "where": "node debate", "what": "there is no `maxi`; did you mean `max`?"}
    assert json.loads(capsys.readouterr().out) == {"ok": False, "findings": [found]}


def test_team_file_is_read_by_its_ending(tmp_path: Path) -> None:
    """JSON contains the same as TOML; an error names the file once."""
    team, file = read_team(SHIPPED / "interview.toml"), tmp_path / "interview.json"
    file.write_text(json.dumps(document_of(team)))
    assert read_team(file) == team
    with pytest.raises(InvalidInputError, match="cannot be read: No such file or directory") as caught:
        read_team(tmp_path / "none.toml")
    assert str(caught.value).count("none.toml") == 1


def test_folder_does_not_hide_a_stored_team(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`ioa team run notes` runs the stored team although a folder `notes` exists; a file `debate` is a team file."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "notes").mkdir()
    (tmp_path / "debate").touch()
    assert [is_file_of_team(Path(name)) for name in ("notes", "debate", "other", "x/y.toml")] == [False, True, False, True]


async def test_drawing_goes_to_standard_output(capsys: pytest.CaptureFixture[str]) -> None:
    """Whole lines, for a program that draws Mermaid."""
    await draw(SHIPPED / "company.toml")
    assert capsys.readouterr().out.startswith("stateDiagram-v2\n    [*] --> n0\n")


JURY = """
team = "jury"
[roles]
host = "h"
juror = { agents = ["ada", "bob"] }
[[nodes]]
name = "talk"
roles = ["host", "juror"]
turns = { mode = "hub", by = "host" }
max = 9
exits = [ { to = "vote", by = "host" } ]
[[nodes]]
name = "vote"
roles = ["juror"]
turns = "together"
form = { score = "1..10", ok = "yes/no" }
"""
VOTE = """
team = "vote"
silent = "skip"
[roles]
v = { agents = ["ann", "bob", "cat"] }
judge = "j"
[[nodes]]
name = "vote"
roles = ["v"]
form = { why = "text", ok = "yes/no?", n = "-9..-3?", out = "v?" }
max = 4
asked = "turn"
exits = [ { to = "late", by = "judge" } ]
[[nodes]]
name = "late"
roles = ["v"]
max = 1
"""


def _tried(folder: Path, capsys: pytest.CaptureFixture[str], team: str | Path, lines: str) -> list[dict[str, Any]]:
    file, script = folder / "team.toml", folder / "script"
    file.write_text(team if isinstance(team, str) else team.read_text())
    script.write_text(lines)
    try_file(Terminal(as_json=True), file, script=script)
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


CHOICES = """
# the outliner chooses
outliner -> section: One.
outliner -> finish: Enough.
===
analyst: (analyst speaks)
reader: (reader speaks)
outliner: on to section: One.
writer: (writer speaks)
outliner: on to finish: Enough.
editor: (editor speaks)
editor: states the conclusion
"""
FORMS = """
host > ada, bob: Well?
host -> vote: Enough.
bob: Yes.
bob {score = 7, ok = yes}: Good.
===
host: to ada, bob: Well?
ada: (ada speaks)
bob: Yes.
host: decision: vote: Enough.
ada: pass: nothing_to_add
bob: Good. [score = 7, ok = True]
host: states the conclusion
"""
SILENCE = """
ann {why = w, ok = maybe}: A.
ann {why = w}: B.
judge -> nowhere: x
judge -> stay: y
judge !silent
bob !silent
cat: Without a reason.
ann {why = w}: C.
bob: Never.
===
ann: A.
ann: B. [why = w]
judge: x
judge: decision: stay: y
bob: pass: nothing_to_add
judge: pass: nothing_to_add
cat: Without a reason.
cat: pass: nothing_to_add
judge: decision: stay
ann: C. [why = w]
ann: (ann speaks)
ann: states the conclusion
: [9]
"""


GAME = """
team = "game"
leader = "host"
[roles]
host = { agent = "h", hears_all = true }
spy = { agent = "cat", secret = true }
player = { agents = ["ann", "bob", "cat"] }
[[nodes]]
name = "vote"
roles = ["player"]
turns = "together"
form = { out = "player" }
exits = [ { to = "out", remove = { field = "out" } } ]
[[nodes]]
name = "out"
roles = ["host"]
max = 1
visits = 9
exits = [ { to = "end", when = { left = "spy", at_most = 0 } }, { to = "vote" } ]
"""
VOTES = """
ann {out = cat}: Out.
bob {out = cat}: Out.
cat {out = bob}: Out.
===
ann: Out. [out = cat]
bob: Out. [out = cat]
cat: Out. [out = bob]; removed: cat was removed
host: (host speaks)
host: states the conclusion
"""


@pytest.mark.parametrize(("team", "play"), [(SHIPPED / "paper-loop.toml", CHOICES), (JURY, FORMS), (VOTE, SILENCE), (GAME, VOTES)])
def test_team_is_played_with_a_script(tmp_path: Path, capsys: pytest.CaptureFixture[str], team: str | Path, play: str) -> None:
    """A script decides the messages, choices and form fields of its lines; rejected and unused lines are shown."""
    script, _, turns = play.strip().partition("\n===\n")
    played = _tried(tmp_path, capsys, team, script)
    assert [f"{one.get('speaker', '')}: {one.get('words') or one.get('lines')}" for one in played] == turns.splitlines()


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        ("why = it's", "why = it's"),
        ('why = "a, b c", out = "cat"', "why = a, b c, out = cat"),
        ("why = x, ok = yes,", "why = x, ok = True"),
        ("why = x, ok = no, n = -4", "why = x, ok = False, n = -4"),
    ],
)
def test_field_value_has_quotes_or_none(tmp_path: Path, capsys: pytest.CaptureFixture[str], written: str, shown: str) -> None:
    """With a comma in double quotes, otherwise as bare words."""
    assert _tried(tmp_path, capsys, VOTE, f"ann {{{written}}}: So.")[0]["words"] == f"So. [{shown}]"


@pytest.mark.parametrize("file", sorted(SHIPPED.glob("*.toml")), ids=lambda file: file.stem)
def test_each_shipped_team_can_be_tried(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A member without a choice is led by the policy to the end."""
    try_file(Terminal(as_json=False), file)
    assert capsys.readouterr().out.splitlines()[-1].endswith(("states the conclusion", "the group has ended: concluded"))


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("outliner says hm", "Line 1 of the script is none of `who: words`"),
        ('outliner {"out": "cat"}: C', "Line 1 of the script is none of"),
        ('outliner {out = "cat: C', "Line 1 of the script is none of"),
        ("# hm\nzoe: x\noutlner: y", r"zoe \(line 2\), outlner \(line 3\); .*outliner"),
    ],
)
def test_invalid_script_is_rejected_with_its_line(tmp_path: Path, capsys: pytest.CaptureFixture[str], line: str, why: str) -> None:
    """By the line, or by the speaker."""
    with pytest.raises(InvalidInputError, match=why):
        _tried(tmp_path, capsys, SHIPPED / "paper-loop.toml", line)


async def test_team_without_a_goal_needs_one(tmp_path: Path) -> None:
    """Before anything is started."""
    bare = tmp_path / "bare.toml"
    bare.write_text('team = "t"\n[roles]\na = "ada"\n[[nodes]]\nname = "x"\nroles = ["a"]\n')
    with pytest.raises(InvalidInputError, match="has no goal of its own"):
        await run(Terminal(as_json=False), bare)


def test_plan_is_a_team_file_with_author_and_cost(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A plan is written to a file that reads back equal, or to standard output. `--json` contains the author and the cost."""
    team, meter, file = read_team(SHIPPED / "debate.toml"), Meter(Usage(tokens_in=1_200, tokens_out=400)), tmp_path / "plan.toml"
    meter.decided_by = DecidedBy(kind="model", name="gpt")
    show_plan(team, meter, file, Terminal(as_json=False))
    shown = capsys.readouterr()
    assert (read_team(file), shown.out) == (team, "")
    assert shown.err == "Planned by gpt, 1,600 tokens\n"
    show_plan(team, meter, None, Terminal(as_json=True))
    document = json.loads(capsys.readouterr().out)
    assert (document["team"], document["usage"]) == (document_of(team), {"tokens_in": 1_200, "tokens_out": 400})
    show_plan(None, Meter(), None, Terminal(as_json=False))
    assert capsys.readouterr() == ("", "The goal needs no policy: `ioa run` it.\n")
