"""`ioa team` with no system in reach."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ioa.cli.teams import check_file, draw_file, read_team
from ioa.cli.terminal import Terminal
from ioa.errors import InvalidInputError
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
