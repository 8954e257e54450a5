"""Goals as lists, over inputs that come from a seed: the figures are checked against pandas."""

from __future__ import annotations

import pytest

from ioa.client.client import Client
from ioa.group.events import SubgroupClosed, SubgroupOpened
from ioa.protocol.goals import Reason
from tests.e2e.goals.outcomes import members_of, run_goal
from tests.e2e.goals.world import World

pytestmark = pytest.mark.slow


async def test_list_of_six_tasks_is_done_with_right_figures(system: Client, world: World) -> None:
    """Three agents use each other's results, and two work in parallel."""
    truth = world.sums(world.group, world.amount)
    words = len(world.text.read_text(encoding="utf-8").split())

    outcome = await run_goal(
        system,
        f"1. sum of {world.amount} by {world.group} in {world.table.name}\n2. bar chart of #1\n"
        f"3. count of words in {world.text.name}\n4. #3 * 2\n5. mean of {world.other} by {world.kind}\n6. report of #1, #2 and #4",
        [world.table, world.text, world.letter],
    )
    page = " ".join(outcome.page().split())

    assert outcome.result.reason == Reason.CONCLUDED, outcome.text
    assert (
        outcome.figures_match(truth),
        outcome.figures_match(world.means(world.kind, world.other)),
        outcome.states(2 * words),
        len(outcome.pictures()),
        outcome.pictures_in_page(),
        all(key in page for key in truth),
        world.other in page,
    ) == (True, True, True, 1, 1, True, False), outcome.text


async def test_rejected_goal_shows_a_list_that_succeeds(system: Client, world: World) -> None:
    """In at most eight lines, with the columns of the user's file."""
    rejected = await run_goal(system, f"Please draw me {world.amount} per {world.kind}, and mail it to Ann", [world.table])
    lines = rejected.text.splitlines()
    _, _, shown = rejected.text.partition("This works:\n")
    goal, *_ = shown.split("\nNot running")
    accepted = await run_goal(system, goal, [world.table])

    assert (rejected.result.reason, len(lines) <= 8) == (Reason.NO_AGENT, True), rejected.text
    assert accepted.result.reason == Reason.CONCLUDED, (goal, accepted.text)


async def test_missing_part_fails_the_goal_and_keeps_the_other_results(system: Client, world: World) -> None:
    """The failed part is named with the reason."""
    text = f"- sum of {world.amount} by {world.kind}\n- translate {world.text.name} into Japanese\n- report of #2"
    outcome = await run_goal(system, text, [world.table, world.text])

    missing, _, done = outcome.text.partition(f"## sum of {world.amount}")
    assert (outcome.result.reason, f"- translate {world.text.name}" in missing) == (Reason.FAILED, True), outcome.text
    assert "- report of #2 (it uses a result that is missing)" in missing
    assert done and outcome.figures_match(world.sums(world.kind, world.amount))


async def test_nested_group_reports_to_its_parent(system: Client, world: World) -> None:
    """A briefing is done by a nested group, whose conclusion and files are the result of the task."""
    truth = world.sums(world.kind, world.amount)

    outcome = await run_goal(
        system,
        f"briefing:\n- sum of {world.amount} by {world.kind}\n- bar chart of #1\n- report of #1 and #2",
        [world.table],
        led_by="calculator",
    )
    root, nested = (outcome.groups[comm_id] for comm_id in outcome.groups)
    opened = [event for event in root if isinstance(event, SubgroupOpened)]
    closed = [event for event in root if isinstance(event, SubgroupClosed)]

    assert outcome.result.reason == Reason.CONCLUDED, outcome.text
    assert (
        len(opened),
        [event.reason for event in closed],
        members_of(nested) >= {"analyst-desk", "csv-analyst", "chart-maker"},
    ) == (1, [Reason.CONCLUDED], True)
    assert (outcome.figures_match(truth), len(outcome.pictures()), outcome.pictures_in_page()) == (True, 1, 1)
