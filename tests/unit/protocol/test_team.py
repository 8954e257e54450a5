"""Team files: shorthands, what is wrong in sentences, and that what is written reads back to the same."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ioa.errors import InvalidInputError
from ioa.protocol.policy import Exit, Opening, Policy, Turns
from ioa.protocol.policy_check import SHORT_FORMS, check
from ioa.protocol.team import Filling, TeamError, TeamSpec, document_of, read_json, read_toml, team_of, to_toml
from ioa.protocol.team_check import check_team
from tests.rig.calls import calls_of
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


def test_all_that_is_wrong_is_told_at_once() -> None:
    """Nobody has to mend a file one error at a time."""
    node = 'max = "3"\nagain = "new"\nform = { n = "1..", vote = "adda", "My F" = "text", s = "9..1" }\nturns = "folow"\n'
    exits = 'exits = [ { to = "z", by = "jugde" }, { to = "z", when = { field = "s", by = "al" } }, { to = "end", By = "a" } ]\n'
    roles = 'ann = { agent = "a", need = "sums" }\nAll = "x"\nada = { count = 0 }\n'
    others = "and there are a, b, ann, All, ada"
    assert sorted(_findings('leader = "zed"\nends = "first"\n' + HEAD + roles + X + node + exits + "takes = 1")) == [
        "`ends` is 'first', and may be leader, last",
        "leader: no role is called 'zed'; there are a, b, ann, All, ada",
        "node x: `again` is 'new', and may be anew, continue; did you mean `anew`?",
        "node x: `max` must be a whole number, and is '3'",
        "node x: `name` of the field 'My F' is 'My F'; a name is 1 to 32 of a-z 0-9 _ -, beginning with a letter",
        "node x: `turns.mode` is 'folow', and may be order, nominate, random, hub, follow, together, ask; did you mean `follow`?",
        "node x: `when.by` of exit 2 is 'al', and may be last, any, all, most; did you mean `all`?",
        "node x: no number is right for the field 's': 9 is more than 1",
        "node x: no role is called 'jugde'; there are a, b, ann, All, ada",
        f"node x: the field 'n' cannot be '1..'; it may be {SHORT_FORMS}",
        f"node x: the field 'vote' is 'adda', which is no role; it may be {SHORT_FORMS}, {others}; did you mean `ada`?",
        "node x: there is no `By`; there are to, when, by, remove",
        "node x: there is no `takes`; did you mean `take`?",
        "node x: there is no node 'z' to go to",
        "role All: a name is 1 to 32 of a-z 0-9 _ -, beginning with a letter",
        "role ada: `count` is 0, and must be at least 1",
        "role ann: has `agent` and `need`; only one of them says who fills it",
    ]


def test_a_loop_ends_when_all_that_it_leads_to_is_used_up() -> None:
    """Then the last node is the end, and the checker says no other thing."""
    assert _findings(HEAD + X + 'visits = 1\nthen = "y"\n' + Y + 'then = "x"') == []
    endless = _findings(HEAD + X + 'then = "y"\n' + Y + 'then = "x"')
    assert endless == [f"node {name}: no way leads from it to the end" for name in ("x", "y")]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('team = "t"\nroles = ["a"]\n' + X, "`roles` is a list: it is a table with who plays which part, under `[roles]`"),
        (HEAD + '[nodes]\nname = "x"', "`nodes` is a table: it is a list of the stretches of the discussion, each under"),
        (HEAD + X.replace('["a", "b"]', "[]"), "node x: `roles` is empty"),
        (HEAD + X.replace('["a", "b"]', '"a"'), 'node x: `roles` must be a list, such as `["a", "b"]`, and is \'a\''),
        (
            HEAD + X + 'form = { n = "1.." }',
            "node x: the field 'n' cannot be '1..'; it may be `text`, `number`, `1..10`, `yes/no`, ",
        ),
        (HEAD + X + 'form = { n = { kind = "nmber" } }', "node x: `kind` of the field 'n' is 'nmber', and may be text, number, "),
        (HEAD + 'c = { agent = "p", need = "q" }\n' + X, "role c: has `agent` and `need`; only one of them says who fills it"),
        (HEAD + X + "form = [1]", "node x: the field 1 must be a table, and is 1"),
        (
            HEAD + X + 'exits = [ { to = "end", by = "c" }, { to = "y", by = "c" } ]\n' + Y,
            "node x: no role is called 'c'; there are",
        ),
        (HEAD.replace("ada", "a da") + X, "role a: `agents`: 'a da' is not a valid id: use 1 to 64 of"),
        (
            HEAD + X + 'exits = [ { to = "end", when = { field = "q", equals = [1] } } ]',
            "node x: `when.equals` of exit 1 is a list, ",
        ),
        (
            HEAD + X + 'max = 3\nexits = [ { to = "end", when = {} }, { to = "end" } ]',
            "node x: exit 1, to end, has an empty `when`; leave it out, or say when",
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


@pytest.mark.parametrize(("read", "written"), [(read_toml, "a = {}"), (read_json, '{{"a": {}}}')])
def test_a_number_of_thousands_of_digits_is_no_number(read: Callable[[str], object], written: str) -> None:
    """Python refuses to read one, and not by the error by which it tells of other faults of a file."""
    with pytest.raises(InvalidInputError, match="This is no"):
        read(written.format("9" * 5_000))


def test_an_opening_is_kept_word_for_word() -> None:
    """Its words are told to the group as they are written."""
    say = 'Two "lines"\nand a back\\slash.'
    team = team_of(
        {"team": "t", "roles": {"a": "ada"}, "nodes": [{"name": "x", "roles": ["a"], "opens": {"role": "a", "say": say}}]}
    )
    assert read_toml(to_toml(team)).policy.nodes[0].opens == Opening(role="a", say=say)


@pytest.mark.parametrize(("word", "value"), [("take", "all"), ("join", "all")])
def test_a_team_that_forks_everywhere_is_refused_at_once(word: str, value: str) -> None:
    """Whoever takes a team in looks at it on its event loop: what 128 such nodes mean together would take it half a minute."""
    names = [f"n{number}" for number in range(128)]
    nodes = [
        {"name": name, "roles": ["a"], "max": 1, "visits": 3, word: value, "exits": [{"to": to} for to in names[number + 1 :][:15]]}
        for number, name in enumerate(names)
    ]
    began = time.process_time()
    with pytest.raises(TeamError, match=f"more than 16 nodes have {word} = '{value}'"):
        team_of({"team": "t", "roles": {"a": "ada"}, "nodes": nodes})
    assert time.process_time() - began < 1


def _forking_nodes(exits: int) -> list[dict[str, Any]]:
    """Write the maximum number of nodes, forks and joins, each node with this number of exits and a last exit."""
    return [
        {
            "name": f"n{at}",
            "roles": ["a"],
            "max": 1,
            "take": "all" if at < 16 else "one",
            "join": "all" if at >= 112 else "any",
            "exits": [*({"to": f"n{(at + ahead) % 128}"} for ahead in range(1, exits + 1)), {"to": "end"}],
        }
        for at in range(128)
    ]


def test_a_team_that_forks_as_often_as_it_may_is_read_in_few_steps_and_once() -> None:
    """Two goals a second with such a team had everybody else's take over a second: what leads where was looked for again."""
    file, exits = {"team": "t", "roles": {"a": "ada"}, "nodes": _forking_nodes(31)}, 128 * 32
    teams: list[TeamSpec] = []
    assert calls_of(lambda: teams.append(team_of(file))) < 100 * exits
    document = document_of(teams[0])
    assert team_of(document) == teams[0]
    assert calls_of(lambda: teams.append(team_of(document))) < exits / 10
    assert teams[1] == teams[0]


def test_words_that_many_exits_wait_for_are_short_where_signs_stand_for_any() -> None:
    """Whoever reads a message takes as many steps for each of its characters."""
    said = [f"*{'a?' * 66}{number}*" for number in range(3)]
    exits = [{"to": "end", "when": {"says": one}} for one in (*said, "*" + "a" * 99)]
    node = {"name": "x", "roles": ["a"], "max": 9, "exits": exits}
    file = {"team": "t", "roles": {"a": "ada"}, "nodes": [node]}
    assert len(team_of(file).policy.nodes[0].awaited_words) == 4
    exits.append({"to": "end", "when": {"says": "b??"}})
    with pytest.raises(TeamError, match=r"node x: the words that its exits wait for have 402 signs beside .* and 400 are the most"):
        team_of(file)


def test_the_guards_of_a_node_have_few_words_together() -> None:
    """Each is looked for in all of each message."""
    guards = [{"without": [f"word {number} of {half}" for number in range(32)]} for half in range(2)]
    node = {"name": "x", "roles": ["a"], "max": 9, "guards": guards, "exits": [{"to": "end"}]}
    file = {"team": "t", "roles": {"a": "ada"}, "nodes": [node]}
    assert len(team_of(file).policy.nodes[0].guards) == 2
    guards.append({"without": ["once more"]})
    with pytest.raises(TeamError, match="node x: its guards have 65 words that must not be said, and 64 are the most"):
        team_of(file)


_FEW = {"team": "t", "roles": {"a": "ada"}, "nodes": [{"name": "n", "roles": ["a"]}]}


def test_a_team_of_very_many_values_is_not_read() -> None:
    """A nested team of a million wrong parts fits into one message, and reading it took up to 16 s."""
    for one in ({**_FEW, "nodes": [{}] * 20_000}, {**_FEW, "roles": dict.fromkeys(map(str, range(20_000)), "ada")}):
        with pytest.raises(TeamError, match="more than 20,000 values"):
            team_of(one)


def test_the_mistakes_of_each_list_are_told_together() -> None:
    """Who mends a team is told of all that is wrong, however many of them stand in one list."""
    exits = [{"to": "end", "when": {"rule": "soon"}}, {"to": 7}, {"to": "end"}, {"to": "No"}]
    nodes = [{"name": f"n{number}", "roles": ["a"], "exits": exits} for number in range(3)]
    with pytest.raises(TeamError) as refused:
        team_of({**_FEW, "nodes": nodes})
    told = [str(one) for one in refused.value.findings]
    assert (len(told), len({one.partition(":")[0] for one in told})) == (9, 3), told


def test_who_has_twenty_mistakes_is_told_no_more() -> None:
    """Reading ends there: each further one was compared with all that are known."""
    with pytest.raises(TeamError) as refused:
        team_of({**_FEW, "nodes": [{"rolls": 1}] * 100})
    assert len(refused.value.findings) == 20
