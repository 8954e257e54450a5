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
