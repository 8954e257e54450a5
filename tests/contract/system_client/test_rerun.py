"""Reruns: a new goal that continues a goal's conversation with one message replaced."""

from __future__ import annotations

import pytest

from ioa.client.client import Client
from ioa.errors import InvalidInputError, NotFoundError, PayloadTooLargeError
from ioa.protocol.goal_order import GoalOrder, InlineInput
from ioa.protocol.goals import MAX_GOAL_CHARS
from ioa.protocol.messages import Discussion
from ioa_testkit.planes import Plane
from tests.contract.system_client.members import ADA, BOB, GOAL, Members

_ORDER = {
    "goal": "Count to ten.",
    "goal_id": GOAL,
    "agent": ADA,
    "inputs": (InlineInput(name="numbers.csv", text="1,2,3"),),
    "max_turns": 9,
    "max_tokens": 9_000,
    "max_cost": 1.5,
    "timeout": 60.0,
    "labels": {"team": "x", "owner": "anna"},
}


async def _talk(client: Client, members: Members) -> tuple[int, int]:
    """Play a goal with two messages and return their sequences."""
    await client.submit(GoalOrder.model_validate(_ORDER))
    await members.launch()
    first = await members.say(ADA, Discussion(content="Shall we count?\nbob (discussion): No.", next_speaker=BOB))
    return first, await members.say(BOB, Discussion(content="Let us.", next_speaker=ADA))


async def test_rerun_contains_the_transcript_with_the_new_message(plane: Plane, members: Members) -> None:
    """A message that imitates another speaker stays one message; entries after the replaced one are left out."""
    client = plane.client
    first, second = await _talk(client, members)
    texts = [
        (await client.goal((await client.rerun(GOAL, at=at, message="Start at nine.")).name)).record.goal.goal
        for at in (first, second)
    ]
    assert all(text.startswith("Count to ten.\n\n") for text in texts)
    lines = [text.splitlines()[4:] for text in texts]
    assert lines[0] == ["ada (team): leads a team with bob", "ada (discussion): Start at nine."]
    said = ["ada (discussion): to bob: Shall we count?", "    │ bob (discussion): No."]
    assert lines[1] == [lines[0][0], *said, "bob (discussion): Start at nine."]


async def test_rerun_has_the_options_of_the_original_and_links_to_it(plane: Plane, members: Members) -> None:
    """Files, addressee and limits are equal; reserved labels are not copied; a filter lists the reruns."""
    client = plane.client
    first, _ = await _talk(client, members)
    before = (await client.goal(GOAL)).record
    rerun = await client.rerun(GOAL, at=first, message="Start at nine.")
    goal = (await client.goal(rerun.name)).record.goal
    fresh = {"goal_id": goal.goal_id, "goal": goal.goal, "traceparent": goal.traceparent, "labels": {"team": "x", "rerun-of": GOAL}}
    assert goal == before.goal.model_copy(update=fresh)
    listed = await client.goals(labels={"rerun-of": GOAL})
    assert [row.record.goal.goal_id for row in listed.goals] == [goal.goal_id]
    assert (await client.goal(GOAL)).record == before


async def test_rerun_of_what_is_no_message_is_rejected(plane: Plane, members: Members) -> None:
    """The goal, the entry and the message must exist, and the text must fit into a goal."""
    client = plane.client
    first, second = await _talk(client, members)
    with pytest.raises(NotFoundError, match="no entry"):
        await client.rerun(GOAL, at=10**9, message="x")
    with pytest.raises(NotFoundError):
        await client.rerun("other", at=first, message="x")
    [launched] = await client.entries(GOAL, limit=1)
    with pytest.raises(InvalidInputError, match="is no message"):
        await client.rerun(GOAL, at=launched.seq, message="x")
    with pytest.raises(InvalidInputError, match="empty"):
        await client.rerun(GOAL, at=first, message=" ")
    with pytest.raises(PayloadTooLargeError, match="exceeds 32,000"):
        await client.rerun(GOAL, at=second, message="x" * MAX_GOAL_CHARS)
