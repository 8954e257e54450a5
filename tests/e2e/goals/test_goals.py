"""Goals nobody wrote into the rules, over inputs nobody has seen: the figures are checked against pandas and Python."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

import pytest

from ioa.adapters.nats.system_client import NatsSystemClient
from ioa.group.events import SubgroupClosed, SubgroupOpened
from ioa.protocol.goals import Reason
from tests.e2e.goals.outcomes import members_of, run_goal
from tests.e2e.goals.world import World

pytestmark = pytest.mark.slow


async def test_totals_and_a_chart_of_them(system: NatsSystemClient, world: World) -> None:
    """Two needs, the second on the first: the totals are right, in words and in the file, and the chart is a picture."""
    truth = world.sums(world.kind, world.amount)

    outcome = await run_goal(
        system, f"total {world.amount} per {world.kind} in {world.table.name}, and a bar chart of it", [world.table]
    )

    assert outcome.result.reason == Reason.CONCLUDED, outcome.text
    assert (outcome.figures_match(truth), outcome.has_table(truth), len(outcome.pictures())) == (True, True, 1)


async def test_a_table_and_a_text_independently(system: NatsSystemClient, world: World) -> None:
    """Two needs that have nothing to do with each other."""
    outcome = await run_goal(
        system,
        f"Compute the average {world.other} per {world.group} in {world.table.name} "
        f"and tell me how many words {world.text.name} has.",
        [world.table, world.text],
    )

    assert outcome.result.reason == Reason.CONCLUDED, outcome.text
    assert (outcome.figures_match(world.means(world.group, world.other)), outcome.states(_words(world.text))) == (True, True)


async def test_a_report_of_both(system: NatsSystemClient, world: World) -> None:
    """Two independent needs and a report that waits for both and holds the table."""
    truth = world.sums(world.kind, world.amount)

    outcome = await run_goal(
        system,
        f"Total {world.amount} per {world.kind} in {world.table.name}, read {world.text.name}, then write a report of both",
        [world.table, world.text],
    )
    page = outcome.page()

    assert outcome.result.reason == Reason.CONCLUDED, outcome.text
    assert (all(key in page for key in truth), outcome.figures_match(truth), _quoted(world, page) >= 2) == (True, True, True)


def _quoted(world: World, text: str) -> int:
    """How many sentences of the world's text stand in another text, word for word."""
    squeezed = " ".join(text.split())
    sentences = re.split(r"(?<=\.) ", world.text.read_text(encoding="utf-8"))
    return sum(sentence.rstrip(".") in squeezed for sentence in sentences)


def _words(text: Path) -> int:
    return len(text.read_text(encoding="utf-8").split())


async def test_a_median_and_a_conversion(system: NatsSystemClient, world: World) -> None:
    """Two questions in two sentences for two agents."""
    miles = len(world.frame) + 0.5

    outcome = await run_goal(
        system, f"What is the median {world.amount} in {world.table.name}? Convert {miles} miles to km.", [world.table]
    )

    assert outcome.result.reason == Reason.CONCLUDED, outcome.text
    assert (outcome.states(float(world.frame[world.amount].median())), outcome.states(miles * 1.609344)) == (True, True)


async def test_a_letter_and_its_words(system: NatsSystemClient, world: World) -> None:
    """A letter is read, and its words are counted."""
    outcome = await run_goal(system, f"Read {world.letter.name}, then count the words in it", [world.letter])
    squeezed = " ".join(outcome.text.split())

    assert outcome.result.reason == Reason.CONCLUDED, outcome.text
    assert all(sentence in squeezed for sentence in world.letter_sentences)
    assert f"words: {sum(len(sentence.split()) for sentence in world.letter_sentences)}" in outcome.text


async def test_the_highest_and_the_number_of_rows(system: NatsSystemClient, world: World) -> None:
    """A ranking and a count of one file."""
    totals = world.sums(world.kind, world.amount)
    best = max(totals, key=lambda key: totals[key])

    outcome = await run_goal(
        system,
        f"Which {world.kind} had the highest total {world.amount} in {world.table.name}, "
        f"and how many rows does {world.table.name} have?",
        [world.table],
    )

    assert outcome.result.reason == Reason.CONCLUDED, outcome.text
    assert (best in outcome.text, outcome.states(totals[best]), outcome.states(len(world.frame))) == (True, True, True)


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


async def test_a_filter_and_a_percentage(system: NatsSystemClient, world: World) -> None:
    """Counting rows that meet a condition, and arithmetic."""
    bound = int(world.frame[world.amount].quantile(0.6))
    truth = int((world.frame[world.amount] > bound).sum())

    outcome = await run_goal(
        system,
        f"How many rows in {world.table.name} have {world.amount} above {bound}, and what is 17 % of {truth * 3 + 50}?",
        [world.table],
    )

    assert outcome.result.reason == Reason.CONCLUDED, outcome.text
    assert (outcome.states(truth), outcome.states(0.17 * (truth * 3 + 50))) == (True, True), outcome.text


async def test_months_a_line_and_a_report(system: NatsSystemClient, world: World) -> None:
    """Three needs, each on the one before: figures by month, a line chart, and a page that embeds it."""
    months = world.frame.groupby(world.frame["day"].str[:7])[world.amount].sum()

    outcome = await run_goal(
        system,
        f"Total {world.amount} per month in {world.table.name}, a line chart of it and a report of both",
        [world.table],
    )

    assert outcome.result.reason == Reason.CONCLUDED, outcome.text
    assert (
        outcome.figures_match({str(month): float(total) for month, total in months.items()}),
        len(outcome.pictures()),
        outcome.pictures_in_page(),
    ) == (True, 1, 1), outcome.text


async def test_counts_of_two_texts_and_a_total(system: NatsSystemClient, world: World) -> None:
    """The words of two files are told file by file, and a column of a third is summed up."""
    outcome = await run_goal(
        system,
        f"How many words are in {world.text.name} and {world.second_text.name}? "
        f"Also compute the total {world.amount} in {world.table.name}.",
        [world.table, world.text, world.second_text],
    )

    assert outcome.result.reason == Reason.CONCLUDED, outcome.text
    assert (
        f"{world.text.name}: words: {_words(world.text)}\n" in outcome.text,
        f"{world.second_text.name}: words: {_words(world.second_text)}\n" in outcome.text,
        outcome.states(float(world.frame[world.amount].sum())),
    ) == (True, True, True), outcome.text


async def test_code_and_a_square_root(system: NatsSystemClient, world: World) -> None:
    """A snippet is run and a root is drawn."""
    count = len(world.frame) * 7

    outcome = await run_goal(
        system, f"Run this Python code: `print(sum(x * x for x in range({count})))` and calculate the square root of {count**2}"
    )

    assert outcome.result.reason == Reason.CONCLUDED, outcome.text
    assert (outcome.states(float(sum(x * x for x in range(count)))), outcome.states(float(count))) == (True, True), outcome.text


async def test_the_top_three_and_a_chart(system: NatsSystemClient, world: World) -> None:
    """A ranking, and a chart of that ranking."""
    totals = world.frame.groupby(world.kind)[world.amount].sum().nlargest(3)

    outcome = await run_goal(
        system, f"Top 3 {world.kind} by total {world.amount} in {world.table.name}, then a bar chart of that", [world.table]
    )

    assert outcome.result.reason == Reason.CONCLUDED, outcome.text
    assert (outcome.figures_match({str(key): float(value) for key, value in totals.items()}), len(outcome.pictures())) == (True, 1)


async def test_two_texts(system: NatsSystemClient, world: World) -> None:
    """The same question to two texts gets two answers."""
    words = [_words(text) for text in (world.text, world.second_text)]

    outcome = await run_goal(
        system,
        f"How many words are in {world.text.name}, and how many words are in {world.second_text.name}?",
        [world.text, world.second_text],
    )

    assert outcome.result.reason == Reason.CONCLUDED, outcome.text
    assert [outcome.states(count) for count in words] == [True, True], outcome.text


async def test_a_text_its_words_and_a_report(system: NatsSystemClient, world: World) -> None:
    """Two readings of one text and a report of both."""
    outcome = await run_goal(
        system,
        f"Read {world.text.name}, count the words in {world.text.name} and write a report of both",
        [world.text],
    )

    assert outcome.result.reason == Reason.CONCLUDED, outcome.text
    assert (_quoted(world, outcome.page()) >= 3, "words: " in outcome.page()) == (True, True)


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
