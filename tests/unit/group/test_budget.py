"""Turns, tokens and money: counted exactly, lent to nested teams, and held whatever runs side by side."""

from __future__ import annotations

import random

from hypothesis import given, settings
from hypothesis import strategies as st

from ioa.group.budget import spent_budget
from ioa.group.events import GroupLaunched
from ioa.group.machine import step
from ioa.protocol.messages import Phase
from ioa.protocol.usage import Usage
from tests.unit.group.scenario import COMM, MAX_TOKENS, START, charter, limits
from tests.unit.group.tree import Tree

DEAREST = 6
"""The most tokens that one message of a tree costs."""


def test_a_group_whose_team_was_too_dear_to_find_can_only_conclude() -> None:
    """What forming the team has cost counts from the first entry on."""
    event = GroupLaunched(at=START, charter=charter("ada", limits=limits()), usage=Usage(tokens_out=MAX_TOKENS))
    state = step(None, event).state
    assert (state.phase, state.floor_holder, state.spent.tokens) == (Phase.CONCLUDING, "ada", MAX_TOKENS)


@settings(max_examples=100, deadline=None, derandomize=True, database=None)
@given(seed=st.integers(min_value=0, max_value=2**32))
def test_a_tree_of_teams_never_uses_more_than_its_goals_budget(seed: int) -> None:
    """Turns are exact. Tokens exceed the budget by at most one message in each group, conclusions apart.

    Any group may move at any time, so teams on all levels run side by side, and teams are cancelled while they spend. The root's
    own count is exact as long as no team was cancelled that had lent something itself.
    """
    choose = random.Random(seed).choice
    rules = limits(max_turns=choose((1, 2, 12, 40, 100))).model_copy(update={"max_tokens": choose((1, 20, 100, 300, 20_000))})
    tree = Tree(rules)
    for _ in range(400):
        running = [comm_id for comm_id, state in tree.states.items() if not state.phase.is_terminal]
        if not running:
            break
        tree.act(choose(running), choose, Usage(tokens_in=choose((0, 1, DEAREST, DEAREST))))
        crossed = sum(spent_budget(state) is not None for state in tree.states.values())
        assert tree.turns() <= rules.max_turns
        root, most = tree.states[COMM], (rules.max_tokens or 0) + DEAREST * crossed
        assert root.spent.tokens <= most + DEAREST
        if not root.phase.is_terminal and not root.loans:
            counted, taken = root.spent.tokens, root.turns_taken + root.nested_turns
            assert taken >= tree.turns()
            assert tree.lost_reports or taken == tree.turns()
            told = tree.spent(conclusions=True)
            assert tree.lost_reports or counted <= told
