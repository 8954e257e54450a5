"""Policies as pictures."""

from __future__ import annotations

import pytest

from ioa.client.drawing import draw_group, draw_policy
from ioa.errors import InvalidInputError
from ioa.group.events import GroupLaunched
from ioa.group.requests import GroupSnapshot
from ioa.protocol.teams.team_file import read_toml
from tests.unit.group.scenario import launched, launched_under
from tests.unit.protocol.policies import SHIPPED


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
