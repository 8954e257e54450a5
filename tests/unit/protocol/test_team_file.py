"""Team files: shorthands, what is wrong in sentences, and that what is written reads back to the same."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

from ioa.errors import InvalidInputError
from ioa.protocol.policy import Policy
from ioa.protocol.policy_parts import Exit, Opening, Turns
from ioa.protocol.teams.team_file import Filling, TeamError, document_of, field_of, read_json, read_toml, team_of, to_toml
from tests.rig.cases import cases
from tests.unit.protocol.policies import SHIPPED, any_team

HEAD = 'team = "t"\n[roles]\na = "ada"\nb = "bob"\n'
X = '[[nodes]]\nname = "x"\nroles = ["a", "b"]\n'
Y = '[[nodes]]\nname = "y"\nroles = ["b"]\n'


def _findings(text: str) -> list[str]:
    try:
        return [str(one) for one in read_toml(text).check()]
    except TeamError as error:
        return [str(one) for one in error.findings]


def test_shorthands_mean_what_is_written_out() -> None:
    """A role may be the name of an agent, turns the name of a mode, `then` a target or several, and no exit at all is the end."""
    team = read_toml(HEAD + X + 'turns = "random"\nthen = ["y", "end"]\n' + Y)
    first, second = team.policy.nodes
    assert team.fillings == (Filling(role="a", agents=("ada",)), Filling(role="b", agents=("bob",)))
    assert (first.turns, first.exits) == (Turns(mode="random"), (Exit(to="y"), Exit(to="end")))
    assert second.exits == (Exit(to="end"),)


@pytest.mark.parametrize(
    "written", ["cool rooms|telephone chains", "cool rooms | telephone chains", " cool rooms |telephone chains "]
)
def test_spaces_around_options_are_stripped(written: str) -> None:
    """Answers are stripped, so that an option with spaces could never be chosen."""
    team = read_toml(f'{HEAD}{X}form = {{ vote = "{written}", why = " text? " }}\n')
    vote, why = team.policy.nodes[0].form
    assert vote == field_of("vote", written) and vote.options == ("cool rooms", "telephone chains")
    assert (why.kind, why.required) == ("text", False)
    table = read_toml(f'{HEAD}{X}[nodes.form]\nvote = {{ kind = "option", options = [" a ", "b"] }}\n')
    assert table.policy.nodes[0].form[0].options == ("a", "b")


@pytest.mark.parametrize("written", ["1-10", "yes or no", "one of a, b", "cool rooms, telephone chains"])
def test_question_of_unknown_form_names_the_grammar(written: str) -> None:
    """The error shows every form, and no word that the question does not contain."""
    with pytest.raises(InvalidInputError, match=r"write yes/no, number, 1\.\.10, this\|that, member or text"):
        field_of("vote", written)


def test_a_role_is_filled_by_an_agent_several_a_pool_or_a_need() -> None:
    """Each with what goes with it."""
    roles = 'a = { agents = ["ada", "eve"] }\nb = { agent = "pool", count = 2 }\nc = { need = "translates", prompt = "Be exact." }'
    team = read_toml(f'team = "t"\n[roles]\n{roles}\n[[nodes]]\nname = "x"\nroles = ["a", "b", "c"]\n')
    assert team.fillings == (
        Filling(role="a", agents=("ada", "eve")),
        Filling(role="b", agents=("pool",), count=2),
        Filling(role="c", need="translates"),
    )
    assert team.policy.roles[2].prompt == "Be exact."


@pytest.mark.parametrize("file", sorted(SHIPPED.glob("*.toml")), ids=lambda file: file.stem)
def test_each_team_that_ships_has_nothing_wrong(file: Path) -> None:
    """Neither an error nor a warning, and it reads back from TOML and JSON to the same."""
    team = read_toml(file.read_text())
    assert team.check() == ()
    assert read_toml(to_toml(team)) == team
    assert read_json(json.dumps(document_of(team))) == team


def test_what_is_written_reads_back_to_the_same() -> None:
    """Of a hundred teams with whatever a policy may have, in TOML, as plain data and in a charter's encoding."""
    choose = random.Random(1).choice
    for _ in range(100):
        team = any_team(choose)
        assert read_toml(to_toml(team)) == team
        assert team_of(document_of(team)) == team
        assert Policy.model_validate(team.policy.model_dump(mode="json")) == team.policy
        assert Policy.model_validate(team.policy.model_dump(mode="json")).digest == team.policy.digest


@pytest.mark.parametrize(("text", "expected"), cases("team_findings"))
def test_finding_names_place_value_and_fix(text: str, expected: list[str]) -> None:
    """Each mistake is reported once, at its innermost place; a warning stops no team."""
    assert _findings(text) == expected


@pytest.mark.parametrize("word", ["take", "join"])
def test_team_with_too_many_forks_or_joins_is_rejected(word: str) -> None:
    """At most 16 nodes fork or join, so that checking a team takes a short time."""
    names = [f"n{number}" for number in range(128)]
    nodes = [
        {"name": name, "roles": ["a"], "max": 1, "visits": 3, word: "all", "exits": [{"to": to} for to in names[number + 1 :][:15]]}
        for number, name in enumerate(names)
    ]
    with pytest.raises(TeamError, match="more than 16 nodes fork or join"):
        team_of({"team": "t", "roles": {"a": "ada"}, "nodes": nodes})


def test_a_policy_that_is_too_large_is_refused() -> None:
    """It travels with its goal and stands in the first entry of its group."""
    nodes = "".join(
        f'[[nodes]]\nname = "n{one}"\nroles = ["a"]\nprompt = "{"x" * 8_000}"\nthen = "n{one + 1}"\n' for one in range(20)
    )
    [found] = _findings(HEAD + nodes + '[[nodes]]\nname = "n20"\nroles = ["b"]\n')
    assert found.startswith("the policy has 16")


def test_a_board_that_is_too_large_is_refused() -> None:
    """Each entry of the group names all that stands on it."""
    nodes = [
        {
            "name": f"n{one}",
            "roles": ["a"],
            "writes": [f"{'w' * 29}-{one % 10}{thing:x}" for thing in range(16)],
            "then": f"n{one + 1}",
        }
        for one in range(40)
    ]
    document = {"team": "t", "roles": {"a": "ada"}, "nodes": [*nodes, {"name": "n40", "roles": ["a"]}]}
    assert len(team_of(document).policy.nodes) == 41  # each thing counts once, wherever it is written
    for number, node in enumerate(nodes):
        node["writes"] = [f"{'w' * 28}-{number:02}{thing:x}" for thing in range(16)]
    with pytest.raises(TeamError, match="the state may reach 27,772 bytes"):
        team_of(document)


@pytest.mark.parametrize("text", ["team = ", 'a = "\ud800"'.encode("utf-8", "replace").decode() + " ="], ids=["cut", "broken"])
def test_what_is_no_toml_is_told_so(text: str) -> None:
    """With the place."""
    with pytest.raises(InvalidInputError, match="This is no TOML"):
        read_toml(text)


def test_an_opening_is_kept_word_for_word() -> None:
    """Its words are told to the group as they are written."""
    say = 'Two "lines"\nand a back\\slash.'
    team = team_of(
        {"team": "t", "roles": {"a": "ada"}, "nodes": [{"name": "x", "roles": ["a"], "opens": {"role": "a", "say": say}}]}
    )
    assert read_toml(to_toml(team)).policy.nodes[0].opens == Opening(role="a", say=say)


_FEW = {"team": "t", "roles": {"a": "ada"}, "nodes": [{"name": "n", "roles": ["a"]}]}


def test_a_team_of_very_many_values_is_not_read() -> None:
    """A nested team of a million wrong parts fits into one message, and reading it took up to 16 s."""
    for one in ({**_FEW, "nodes": [{}] * 20_000}, {**_FEW, "roles": dict.fromkeys(map(str, range(20_000)), "ada")}):
        with pytest.raises(TeamError, match="more than 20,000 values"):
            team_of(one)
