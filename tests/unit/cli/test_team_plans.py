"""What `ioa team plan` writes of a plan."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ioa.cli.team_plans import tell_plan
from ioa.cli.teams import read_team
from ioa.cli.terminal import Terminal
from ioa.ports.meter import Meter
from ioa.protocol.decisions import DecidedBy
from ioa.protocol.team import document_of
from ioa.protocol.usage import Usage
from tests.unit.protocol.policies import SHIPPED


def test_a_plan_is_a_team_file_and_says_who_made_it_at_what_cost(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A file that reads back to the same, or standard output; what else is told goes beside it, and programs get all of it."""
    team, meter, file = read_team(SHIPPED / "debate.toml"), Meter(Usage(tokens_in=1_200, tokens_out=400)), tmp_path / "plan.toml"
    meter.decided_by = DecidedBy(kind="rules", instead_of="gpt", cause="useless_answer")
    tell_plan(team, meter, file, Terminal(as_json=False), drawn_too=False)
    told = capsys.readouterr()
    assert (read_team(file), told.out) == (team, "")
    assert told.err == "Planned by rules instead of gpt: useless_answer, 1,600 tokens\n"
    tell_plan(team, meter, None, Terminal(as_json=True), drawn_too=False)
    document = json.loads(capsys.readouterr().out)
    assert (document["team"], document["usage"]) == (document_of(team), {"tokens_in": 1_200, "tokens_out": 400})
    tell_plan(None, Meter(), None, Terminal(as_json=False), drawn_too=False)
    assert capsys.readouterr() == ("", "The goal needs no policy: `ioa run` it.\n")
