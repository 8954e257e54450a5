"""Teams that are written in Python."""

from __future__ import annotations

from pathlib import Path

import pytest

from ioa import Team
from ioa.protocol.teams.team_file import read_json, read_toml


def debate() -> Team:
    """A team with something of everything."""
    team = Team("debate", goal="Close the centre?", max_turns=20, leader="chair")
    pro, con = team.roles(pro="debater", con="debater")
    chair = team.role("chair", need="sums up", prompt="Be fair.", at_most=3)
    team.node("debate", [pro, con], opens=(pro, "I open."), max=6, visits=2).exit("end", by="speaker").then("verdict")
    team.node("verdict", [chair], turns="random", max=1).exit("debate", when={"visits": 1}).then("vote")
    vote = team.node("vote", [pro, con], turns="together", form={"out": "member", "sure": "1..10?"}, max=4)
    vote.exit("debate", by=chair).exit("end", remove={"field": "out"})
    return team


@pytest.mark.parametrize("name", ["team.toml", "team.json"])
def test_a_written_team_reads_back_to_the_same(tmp_path: Path, name: str) -> None:
    """From a file of either form, which contains only the given fields."""
    file = tmp_path / name
    debate().write(file)
    read = read_toml if file.suffix == ".toml" else read_json
    assert read(file.read_text()) == debate().spec


def test_shorthands_are_those_of_a_file() -> None:
    """Roles by their agents, turns by their mode, opening words with their role, and no exit is the end."""
    team = Team("talk")
    host, guest = team.roles(host="ann", guest="bob")
    team.node("talk", [host, guest], turns={"mode": "hub", "by": host}, opens=guest, max=3)
    spec = read_toml(
        'team = "talk"\n[roles]\nhost = "ann"\nguest = "bob"\n[[nodes]]\nname = "talk"\nroles = ["host", "guest"]\nmax = 3\n'
        'turns = { mode = "hub", by = "host" }\nopens = { role = "guest" }\n'
    )
    assert team.spec == spec
