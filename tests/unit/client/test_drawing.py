"""Policies as pictures."""

from __future__ import annotations

import random

import pytest

from ioa.client.drawing import draw_group, draw_policy
from ioa.errors import InvalidInputError
from ioa.group.events import GroupLaunched
from ioa.group.requests import GroupSnapshot
from ioa.protocol.team import read_toml, team_of
from tests.unit.group.scenario import launched, launched_under
from tests.unit.protocol.policies import SHIPPED, any_policy


def test_a_debate_is_drawn() -> None:
    """A box names the speakers, and an arrow the condition."""
    assert draw_policy(read_toml((SHIPPED / "debate.toml").read_text()).policy, at="verdict") == (
        "stateDiagram-v2\n"
        "    [*] --> n0\n"
        '    state "debate<br/>for, against (order)" as n0\n'
        "    n0 --> n1: max = 6\n"
        '    state "verdict<br/>chair (order)" as n1\n'
        "    n1 --> [*]: after a round\n"
        "    classDef here stroke-width:4px\n"
        "    class n1 here\n"
    )


def test_forks_and_joins_are_marked() -> None:
    """Their arrows look like those of other nodes."""
    x = {"name": "x", "roles": ["a"], "take": "all", "then": ["y", "z"]}
    y, z = {"name": "y", "roles": ["a"], "then": "z"}, {"name": "z", "roles": ["a"], "join": "all"}
    shown = draw_policy(team_of({"team": "t", "roles": {"a": "any"}, "nodes": [x, y, z]}).policy)
    assert '"x<br/>a (order)<br/>take = all" as n0' in shown
    assert '"z<br/>a (order)<br/>join = all" as n2' in shown


def test_watchers_stand_beside() -> None:
    """The nodes of each watcher, its times and its rights."""
    team = {
        "team": "t",
        "roles": {"a": "ada", "b": "bob", "c": "eve"},
        "nodes": [{"name": "x", "roles": ["a", "b"], "max": 4, "visits": 2}],
        "watchers": [
            {"role": "c", "by": "b", "may": ["remove", "go"], "go": ["x"]},
            {"role": "a", "node": "x", "every": 3, "may": "end"},
        ],
    }
    assert (
        "    note right of n0\n"
        "        watcher: role = c, by = b, may = remove, go, go = x\n"
        "        watcher: role = a, node = x, every = 3, may = end\n"
        "    end note\n"
    ) in draw_policy(team_of(team).policy)


def test_a_group_is_drawn_with_the_node_it_stands_in() -> None:
    """During the discussion; a group without a policy has no picture."""
    policy = read_toml((SHIPPED / "debate.toml").read_text()).policy
    story = launched_under(policy, {"for": ["ada"], "against": ["bob"], "chair": ["eve"]}, "ada", "bob", "eve")
    launch = story.log[0]
    assert isinstance(launch, GroupLaunched)
    shown = GroupSnapshot(seq=1, state=story.state, charter=launch.charter)
    assert draw_group(shown) == draw_policy(policy, at="debate")
    ended = shown.model_copy(update={"state": story.cancelled().state})
    assert draw_group(ended) == draw_policy(policy)
    with pytest.raises(InvalidInputError, match="No policy leads the group room"):
        draw_group(GroupSnapshot(seq=1, state=launched("ada", "bob").state, charter=None))


def test_each_exit_is_one_arrow() -> None:
    """And a node without an exit leads to the end."""
    choose = random.Random(3).choice
    for _ in range(50):
        policy = any_policy(choose)
        arrows = sum("-->" in line for line in draw_policy(policy).splitlines())
        assert arrows == 1 + sum(max(1, len(node.exits)) for node in policy.nodes)
