"""Team files: shorthands, what is wrong in sentences, and that what is written reads back to the same."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

from ioa.errors import InvalidInputError
from ioa.protocol.policy import Exit, Opening, Policy, Turns
from ioa.protocol.policy_check import check
from ioa.protocol.team import Filling, TeamError, document_of, field_of, read_json, read_toml, team_of, to_toml
from ioa.protocol.team_check import check_team
from tests.rig.cases import cases
from tests.unit.protocol.policies import SHIPPED, any_team

HEAD = 'team = "t"\n[roles]\na = "ada"\nb = "bob"\n'
X = '[[nodes]]\nname = "x"\nroles = ["a", "b"]\n'
Y = '[[nodes]]\nname = "y"\nroles = ["b"]\n'


LAST = (
    "node x: ends = 'last' makes the last message the result, {}and not all hear those here: let all hear them, or leave `ends` out"
)
SECRET = (
    'team = "t"\nleader = "a"\n[roles]\na = { agent = "ada", hears_all = true }\nb = { agent = "bob", secret = true }\n'
    'c = { agent = "eve", secret = true }\n[[nodes]]\nname = "x"\nroles = ["b", "c"]\n'
)


def _findings(text: str) -> list[str]:
    try:
        return [str(one) for one in check(read_toml(text).policy)]
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
    assert check_team(team) == ()
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


@pytest.mark.parametrize(
    ("text", "expected"),
    cases("team_mistakes"),
)
def test_each_mistake_is_told_once_in_a_sentence(text: str, expected: str) -> None:
    """It names the innermost place and what to do."""
    assert [one for one in _findings(text) if one.startswith(expected)] == _findings(text) != []


@pytest.mark.parametrize(
    ("text", "expected"),
    cases("team_warnings"),
)
def test_what_is_worth_a_thought_is_a_warning(text: str, expected: str) -> None:
    """It keeps nobody from running the team."""
    assert [(one.kind, str(one)) for one in check(read_toml(text).policy)] == [("warning", expected)]


@pytest.mark.parametrize(
    ("node", "expected"),
    [
        ('roles = ["b"]\nheard_by = ["d", "c"]', "node x: b is secret, and d hear who speaks here"),
        ('roles = ["b"]\nheard_by = ["a", "c"]', None),
        ('roles = ["b", "c"]\nheard_by = { b = ["d"], c = ["a"] }', "node x: b, c are secret, and d hear who speaks as b"),
        ('roles = ["b", "c"]\nheard_by = { b = ["d"], c = ["d"] }', None),
    ],
)
def test_who_hears_a_secret_role_speak_is_named(node: str, expected: str | None) -> None:
    """Be it all, or the holders of a role that is neither secret nor hears all."""
    team = SECRET.replace('roles = ["b", "c"]\n', f"{node}\nmax = 4\n").replace("c = {", 'd = "dan"\nc = {')
    told = [str(one) for one in check(read_toml(team).policy) if "hear who speaks" in str(one)]
    assert told == ([] if expected is None else [expected])


@pytest.mark.parametrize(
    ("text", "expected"),
    cases("member_warnings"),
)
def test_what_cannot_work_with_so_many_members_is_a_warning(text: str, expected: list[str]) -> None:
    """What a policy alone allows may be impossible for those who take part: a question before a round is over, one turn for two."""
    assert [str(one) for one in check_team(read_toml(text))] == expected


def test_whoever_holds_a_secret_role_besides_another_one_has_turns() -> None:
    """The check advises to let it play another role, and is content then; who holds nothing else is told."""
    text = 'team = "t"\nleader = "a"\n[roles]\na = { agent = "ada", hears_all = true }\nb = { agents = ["bob", "eve"] }\n'
    text += 'c = { agent = "eve", secret = true }\n[[nodes]]\nname = "x"\nroles = ["b"]\nmax = 4\n'
    assert [str(one) for one in check_team(read_toml(text))] == []
    assert [str(one) for one in check_team(read_toml(text.replace('"bob", "eve"', '"bob", "fay"')))] == [
        "role c: nobody who holds it ever has a turn",
        "role c: is secret, and only its holders play nothing that all know of: let them play another role too",
    ]


def test_secret_roles_that_speak_by_chance_beside_each_other_do_not_show() -> None:
    """The common node of a game of hidden roles is no mistake."""
    assert _findings(SECRET + 'turns = "random"\nmax = 4') == []


def test_who_ends_by_the_last_message_is_told_why_all_have_to_hear_it() -> None:
    """Also in a node that leads on: behind it perhaps nobody is present."""
    node = X + 'heard_by = "node"\n'
    head = 'ends = "last"\n' + HEAD
    assert _findings(head + node) == [LAST.format("")]
    ahead = "which is the last one also if nobody is present in y, "
    assert _findings(head + node + 'then = "y"\n' + Y) == [LAST.format(ahead)]


def test_who_never_has_a_turn_may_be_there_for_tasks() -> None:
    """Where a node gives out tasks, any member may be given one."""
    assert check(read_toml(HEAD + Y + "tasks = true").policy) == ()


def test_a_loop_ends_when_all_that_it_leads_to_is_used_up() -> None:
    """Then the last node is the end, and the checker says no other thing."""
    assert _findings(HEAD + X + 'visits = 1\nthen = "y"\n' + Y + 'then = "x"') == []
    endless = _findings(HEAD + X + 'then = "y"\n' + Y + 'then = "x"')
    assert endless == [f"node {name}: no way leads from it to the end" for name in ("x", "y")]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('team = "t"\nroles = ["a"]\n' + X, "`roles` is a list: it is a table with who plays which part, under `[roles]`"),
        (HEAD + X.replace('["a", "b"]', "[]"), "node x: `roles` is empty"),
        (HEAD + X.replace('["a", "b"]', '"a"'), 'node x: `roles` must be a list, such as `["a", "b"]`, and is \'a\''),
        (
            HEAD + X + 'form = { n = "1.." }',
            "node x: the field 'n' cannot be '1..'; it may be `text`, `number`, `1..10`, `yes/no`, ",
        ),
        (HEAD + 'c = { agent = "p", need = "q" }\n' + X, "role c: has `agent` and `need`; only one of them says who fills it"),
        (HEAD.replace("ada", "a da") + X, "role a: `agents`: 'a da' is not a valid id: use 1 to 64 of"),
        (
            HEAD + X + 'exits = [ { to = "end", when = { field = "q", equals = [1] } } ]',
            "node x: `when.equals` of exit 1 is a list, ",
        ),
    ],
)
def test_what_is_of_the_wrong_kind_is_told_in_words_of_the_file(text: str, expected: str) -> None:
    """The field by its name and the place by its node; never in words of a library."""
    [found] = _findings(text)
    assert found.startswith(expected)


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
    with pytest.raises(TeamError, match="the state may reach 26,131 bytes"):
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
