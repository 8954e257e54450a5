"""Goals nobody wrote into the rules, over inputs nobody has seen: the figures are checked against pandas and Python."""

from __future__ import annotations

import asyncio
import re

import pytest

from ioa.adapters.nats.system_client import NatsSystemClient
from ioa.group.events import SubgroupClosed, SubgroupOpened
from ioa.protocol.goals import Reason
from tests.e2e.goals.outcomes import members_of, run_goal
from tests.e2e.goals.world import World

pytestmark = pytest.mark.slow


def _quoted(world: World, text: str) -> int:
    """How many sentences of the world's text stand in another text, word for word."""
    squeezed = " ".join(text.split())
    sentences = re.split(r"(?<=\.) ", world.text.read_text(encoding="utf-8"))
    return sum(sentence.rstrip(".") in squeezed for sentence in sentences)


async def test_a_list_about_one_file(system: NatsSystemClient, world: World) -> None:
    """The file that is named above a list is that of each item: a figure of some rows, and a picture."""
    first, *_ = world.means(world.kind, world.amount)
    truth = float(world.frame[world.frame[world.kind] != first][world.amount].mean())

    outcome = await run_goal(
        system,
        f"For {world.table.name}:\n- average {world.amount} where {world.kind} is not {first}\n"
        f"- line chart of total {world.amount} per month",
        [world.table],
    )

    assert outcome.result.reason == Reason.CONCLUDED, outcome.text
    assert (outcome.states(truth), len(outcome.pictures())) == (True, 1), outcome.text


async def test_five_needs(system: NatsSystemClient, world: World) -> None:
    """Five needs over a table, a text and a letter, the last on all others."""
    truth = world.sums(world.group, world.amount)

    outcome = await run_goal(
        system,
        f"Total {world.amount} per {world.group} in {world.table.name}, a bar chart of it, "
        f"read {world.text.name}, read {world.letter.name}, and write a report of everything",
        [world.table, world.text, world.letter],
    )
    page = " ".join(outcome.page().split())

    assert outcome.result.reason == Reason.CONCLUDED, outcome.text
    assert (
        outcome.figures_match(truth),
        len(outcome.pictures()),
        outcome.pictures_in_page(),
        all(key in page for key in truth),
        _quoted(world, page) >= 2,
        any(sentence in page for sentence in world.letter_sentences),
    ) == (True, 1, 1, True, True, True), outcome.text


async def test_many_goals_at_once(system: NatsSystemClient, world: World) -> None:
    """Goals that run side by side do not mix their figures."""
    asked = [(world.kind, world.amount), (world.group, world.amount), (world.kind, world.other), (world.group, world.other)]

    outcomes = await asyncio.gather(
        *(run_goal(system, f"total {amount} per {by} in {world.table.name}", [world.table]) for by, amount in asked)
    )

    right = [outcome.has_table(world.sums(by, amount)) for outcome, (by, amount) in zip(outcomes, asked, strict=True)]
    assert right == [True] * 4, [outcome.text for outcome in outcomes]


@pytest.mark.parametrize(
    ("goal", "unmet"),
    [
        ("Book a flight to {place} for next Tuesday", "flight"),
        ("- Sing me a lullaby\n- Compose a fugue\n- Compute the total {amount} in {table}", "fugue"),
    ],
)
async def test_a_goal_that_nobody_serves_says_which_need(system: NatsSystemClient, world: World, goal: str, unmet: str) -> None:
    """A clear failure, typed, that names what nobody can do, and not what somebody could."""
    text = goal.format(
        place="Velmor", amount=world.amount, kind=world.kind, table=world.table.name, text=world.text.name
    )  # fmt: skip

    outcome = await run_goal(system, text, [world.table, world.text])

    assert (outcome.result.reason, unmet in outcome.text, f"per {world.kind}" in outcome.text) == (Reason.NO_AGENT, True, False), (
        outcome.text
    )


async def test_what_an_agent_refuses_is_named_beside_what_was_done(system: NatsSystemClient, world: World) -> None:
    """Half of a goal that can be done is, and the answer begins with the words that nobody here understands."""
    text = f"Total {world.amount} per {world.kind} in {world.table.name}, and translate {world.text.name} into Japanese"
    outcome = await run_goal(system, text, [world.table, world.text])
    missing, _, done = outcome.text.partition("## Total")
    assert (outcome.result.reason, "'japanese'" in missing.lower(), f"per {world.kind}" in done) == (Reason.FAILED, True, True), (
        outcome.text
    )


async def test_a_nested_team_reports_to_its_parent(system: NatsSystemClient, world: World) -> None:
    """A briefing is done by a nested team: the child's conclusion closes the parent's task, and its files reach the user."""
    truth = world.sums(world.kind, world.amount)

    outcome = await run_goal(
        system,
        f"Prepare a briefing on {world.table.name} with the total {world.amount} per {world.kind}, a chart of it and a report",
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
    ) == (
        1,
        [Reason.CONCLUDED],
        True,
    )
    assert (outcome.figures_match(truth), len(outcome.pictures()), outcome.pictures_in_page()) == (True, 1, 1)
