"""`ioa team` with no system in reach."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ioa.cli.teams import check_file, draw_file, goal_of_team, read_team, try_file
from ioa.cli.terminal import Terminal
from ioa.errors import InvalidInputError
from ioa.protocol.goal_order import order_of
from ioa.protocol.team import document_of
from ioa.runtime.exit_code import ExitCode
from tests.unit.protocol.policies import SHIPPED


def test_a_good_file_is_told_in_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    """With what it holds."""
    assert check_file(SHIPPED / "debate.toml", Terminal(as_json=False)) is ExitCode.DONE
    assert capsys.readouterr().out == "debate: 3 roles, 2 nodes\n"


def test_a_file_with_errors_exits_2_and_names_each(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """In words, or as JSON for programs."""
    file = tmp_path / "bad.toml"
    file.write_text((SHIPPED / "debate.toml").read_text().replace("max   = 6", "maxi = 6"))
    assert check_file(file, Terminal(as_json=False)) is ExitCode.BAD_USE
    assert capsys.readouterr().out == "error: node debate: there is no `maxi`; did you mean `max`?\n"
    assert check_file(file, Terminal(as_json=True)) is ExitCode.BAD_USE
    found = {"kind": "error", "where": "node debate", "what": "there is no `maxi`; did you mean `max`?"}
    assert json.loads(capsys.readouterr().out) == {"ok": False, "findings": [found]}


def test_json_is_read_as_toml_is(tmp_path: Path) -> None:
    """The name of the file tells which it is."""
    team = read_team(SHIPPED / "interview.toml")
    file = tmp_path / "interview.json"
    file.write_text(json.dumps(document_of(team)))
    assert read_team(file) == team


def test_a_file_that_is_not_there_is_told_so(tmp_path: Path) -> None:
    """By its name."""
    with pytest.raises(InvalidInputError, match=r"none\.toml cannot be read"):
        read_team(tmp_path / "none.toml")


def test_a_picture_goes_to_standard_output(capsys: pytest.CaptureFixture[str]) -> None:
    """Whole lines, to be piped into whatever draws Mermaid."""
    draw_file(SHIPPED / "company.toml", Terminal(as_json=False))
    assert capsys.readouterr().out.startswith("stateDiagram-v2\n    [*] --> n0\n")


def test_a_team_is_tried_in_memory(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Who speaks when, with what a script has them choose; the end is told too."""
    script = tmp_path / "script"
    script.write_text("# the outliner chooses\noutliner -> section: One.\noutliner -> finish: Enough.\n")
    try_file(SHIPPED / "paper-loop.toml", script, Terminal(as_json=True))
    told = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [one["speaker"] for one in told] == ["analyst", "reader", "outliner", "writer", "outliner", "editor", "editor"]
    assert (told[2]["words"], told[-1]) == (
        "One.",
        {"event": "end", "turn": 7, "node": "", "speaker": "editor", "words": "states the conclusion"},
    )


def test_a_script_fills_forms_in_names_several_and_judges(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What is asked for and not scripted is filled in with what comes first, and nobody has to be scripted."""
    file, script = tmp_path / "jury.toml", tmp_path / "script"
    file.write_text(
        'team = "jury"\n[roles]\nhost = "h"\njuror = { agents = ["ada", "bob"] }\n'
        '[[nodes]]\nname = "talk"\nroles = ["host", "juror"]\nturns = { mode = "hub", by = "host" }\nmax = 9\n'
        'exits = [ { to = "vote", by = "host" } ]\n'
        '[[nodes]]\nname = "vote"\nroles = ["juror"]\nturns = "together"\nform = { score = "1..10", ok = "yes/no" }\n'
    )
    script.write_text("host > ada, bob: Well?\nhost -> vote: Enough.\nbob: Yes.\nbob {score = 7, ok = yes}: Good.\n")
    try_file(file, script, Terminal(as_json=True))
    told = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [(one["turn"], one["speaker"], one["words"]) for one in told] == [
        (1, "host", "Well?"),
        (2, "ada", "(ada speaks)"),
        (2, "bob", "Yes."),
        (3, "host", "decides: vote"),
        (4, "ada", "(ada speaks) [score = 1, ok = False]"),
        (4, "bob", "Good. [score = 7, ok = True]"),
        (5, "host", "states the conclusion"),
    ]


@pytest.mark.parametrize("file", sorted(SHIPPED.glob("*.toml")), ids=lambda file: file.stem)
def test_each_team_that_ships_can_be_tried(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Whoever chooses nothing is led by the policy to the end."""
    try_file(file, None, Terminal(as_json=False))
    assert capsys.readouterr().out.splitlines()[-1].endswith(("states the conclusion", "the group has ended: concluded"))


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("outliner -> editor: Hm.", "Turn 3, outliner in outline: No way out that you may choose leads to editor"),
        ("outliner says hm", "Line 1 of the script is not"),
    ],
)
def test_a_script_that_cannot_be_played_says_where(tmp_path: Path, line: str, why: str) -> None:
    """By the turn, or by the line."""
    script = tmp_path / "script"
    script.write_text(line)
    with pytest.raises(InvalidInputError, match=why):
        try_file(SHIPPED / "paper-loop.toml", script, Terminal(as_json=True))


def test_a_goal_of_a_team_has_its_words_and_its_turns(tmp_path: Path) -> None:
    """Unless others are given; a team without a goal of its own needs one."""
    team, words = goal_of_team(SHIPPED / "debate.toml", None)
    order = order_of(words, team=team, timeout=60)
    assert (order.goal, order.max_turns, order.timeout) == ("Should the city close its centre to cars?", 100, 60)
    assert order_of(goal_of_team(SHIPPED / "debate.toml", "Should it rain?")[1], team=team).goal == "Should it rain?"
    bare = tmp_path / "bare.toml"
    bare.write_text('team = "t"\n[roles]\na = "ada"\n[[nodes]]\nname = "x"\nroles = ["a"]\n')
    with pytest.raises(InvalidInputError, match="has no goal of its own"):
        goal_of_team(bare, None)
