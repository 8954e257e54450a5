"""Whatever rules are told to plan, their agent goes on: they read a bounded text, beside the event loop, and are given up on."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator, Sequence
from datetime import timedelta

import pytest

from ioa.agent.rules import RuleBrain, brain
from ioa.agent.rules.brain import MAX_READ_CHARS
from ioa.agent.rules.matching import DEFAULT_THRESHOLD
from ioa.agent.rules.planning import plan_goal
from ioa.errors import PayloadTooLargeError, TaskError, UnavailableError
from ioa.ports.brain import Alone, Mission, NobodyFits, Team, TeamTools
from ioa.protocol.search import Need, SearchResult
from ioa.testing.deadline import eventually
from tests.unit.agent.rules.found_agents import TabledTools, tools_of
from tests.unit.agent.rules.group_play import card
from tests.unit.agent.rules.test_teams import task_view
from tests.unit.patterns.bounding import bounded

ME = card("me", "greets people")
CSV = card("csv-analyst", "computes statistics of CSV files")
TOO_LONG = "Compute " + "a." * MAX_READ_CHARS


def _tools() -> TabledTools:
    return tools_of((ME, CSV), {"csv-analyst": {"total": 0.9}})


def _mission(text: str) -> Mission:
    return Mission(text=text, inputs=(), me=ME, depth=0)


class Stuck:
    """A way to plan goals that comes to no end until the test lets it."""

    def __init__(self) -> None:
        self.let_go = threading.Event()
        self.threads: list[threading.Thread] = []

    async def plan(self, mission: Mission, tools: TeamTools, threshold: float) -> Team | NobodyFits:
        """Hold the thread up, as an expression does that tries everything; then plan."""
        self.threads.append(threading.current_thread())
        self.let_go.wait(20)
        return await plan_goal(mission, tools, threshold)


@pytest.fixture
def stuck(monkeypatch: pytest.MonkeyPatch) -> Iterator[Stuck]:
    """Rules that come to no end with any goal."""
    stuck = Stuck()
    monkeypatch.setattr(brain, "plan_goal", stuck.plan)
    yield stuck
    stuck.let_go.set()


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


async def test_the_loop_goes_on_while_rules_read(stuck: Stuck) -> None:
    """Planning that comes to no end holds up nothing else in the process."""
    async with asyncio.TaskGroup() as group:
        forming = group.create_task(RuleBrain().form_team(_mission("total sales"), _tools()))
        await eventually(lambda: bool(stuck.threads))
        assert threading.current_thread() not in stuck.threads
        stuck.let_go.set()
    assert isinstance(forming.result(), Team)


async def test_planning_that_comes_to_no_end_is_given_up_with_a_reason(stuck: Stuck) -> None:
    """It is left behind, and the goal's failure says what to do."""
    with pytest.raises(TaskError, match=r"no decision within 0\.01 s.*Say it in shorter"):
        await RuleBrain(decides_within=timedelta(milliseconds=10)).form_team(_mission("total sales"), _tools())
    assert not stuck.let_go.is_set()


async def test_more_plans_that_come_to_no_end_than_there_are_places_keep_nobody_out(stuck: Stuck) -> None:
    """What was given up frees its place, so that the next goal is begun."""
    rules = RuleBrain(decides_within=timedelta(milliseconds=10))
    for _ in range(20):
        with pytest.raises(TaskError):
            await rules.form_team(_mission("total sales"), _tools())
    assert len(stuck.threads) == 20


@pytest.mark.blocks_loop  # on the main thread, which alone can be interrupted
@pytest.mark.parametrize("unit", ["a.", "1.", "a-", " ", "\n ", ",", ", and ", "x, y, ", "a/a._", "'a ", "word, plus ", "(["])
def test_the_longest_goal_that_is_read_is_decided_in_time(unit: str) -> None:
    """Whatever is repeated in it, a decision takes less CPU time than the rules may take: the process is not held up for long."""
    text = ("Compute x " + unit * MAX_READ_CHARS)[: MAX_READ_CHARS - 2] + "\x01x"
    with bounded(10):
        answer = asyncio.run(plan_goal(_mission(text), _tools(), DEFAULT_THRESHOLD))
    assert isinstance(answer, Team | NobodyFits)


class Away(TabledTools):
    """Discovery that is out of reach."""

    async def search_client(self, needs: Sequence[Need]) -> SearchResult:
        """Fail."""
        raise UnavailableError("Nobody answers.")


async def test_an_outage_of_discovery_reaches_who_leads() -> None:
    """What a tool raises comes out of the decision as it is."""
    with pytest.raises(UnavailableError, match="Nobody answers"):
        await RuleBrain().form_team(_mission("total sales"), Away({}, {}))
