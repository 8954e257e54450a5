"""Whatever rules are told to plan, their agent goes on: they read a bounded text, and quickly."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from ioa.agent.rules import RuleBrain
from ioa.agent.rules.text.goal_splitting import MAX_READ_CHARS
from ioa.errors import PayloadTooLargeError, UnavailableError
from ioa.ports.brain import Alone, Mission
from ioa.protocol.search import Need, SearchResult
from tests.unit.agent.rules.found_agents import TabledTools, tools_of
from tests.unit.agent.rules.group_play import card
from tests.unit.agent.rules.test_teams import task_view

ME = card("me", "greets people")
CSV = card("csv-analyst", "computes statistics of CSV files")
TOO_LONG = "Compute " + "a." * MAX_READ_CHARS


def _tools() -> TabledTools:
    return tools_of((ME, CSV), {"csv-analyst": {"total": 0.9}})


def _mission(text: str) -> Mission:
    return Mission(text=text, inputs=(), me=ME, depth=0)


async def test_a_goal_longer_than_rules_read_is_refused_with_both_lengths() -> None:
    """The refusal says how long it is, how long it may be, and what to do; discovery is not asked."""
    tools = _tools()
    with pytest.raises(PayloadTooLargeError, match=r"4,008 characters, and without a model agents read up to 2,000.*send the rest"):
        await RuleBrain().form_team(_mission(TOO_LONG), tools)
    assert tools.searches == []


async def test_a_long_task_is_done_alone_in_its_own_words() -> None:
    """A task that is too long to be taken apart is told to the agent's function as it was given out."""
    view = task_view(TOO_LONG, ME)
    assert await RuleBrain().approach(view, _tools()) == Alone(TOO_LONG)


class Away(TabledTools):
    """Discovery that is out of reach."""

    async def search_client(self, needs: Sequence[Need]) -> SearchResult:
        """Fail."""
        raise UnavailableError("Nobody answers.")


async def test_an_outage_of_discovery_reaches_who_leads() -> None:
    """What a tool raises comes out of the decision as it is."""
    with pytest.raises(UnavailableError, match="Nobody answers"):
        await RuleBrain().form_team(_mission("total sales"), Away({}, {}))
