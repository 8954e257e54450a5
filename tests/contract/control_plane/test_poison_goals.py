"""Goals that cannot be read keep nobody's goal from being taken in, however many there are."""

from __future__ import annotations

import json
from collections import Counter

import pytest
from nats.aio.client import Client

from ioa.adapters.nats.delivery.work_queue import Delivery, consume
from ioa.adapters.nats.streams.topology import GOALS, intake_consumer
from ioa.concurrency import beside
from ioa.protocol import subjects
from ioa.protocol.ids import LOCAL
from ioa.protocol.texts import MAX_TEXT_CHARS
from tests.contract.control_plane.conftest import nothing_is_poison
from tests.rig.deadline import eventually
from tests.unit.runtime.plane import Plane

POISON = (
    b'{"goal":"x","inputs":["\\ud800"]}',
    b'{"goal":"x","inputs":[{"name":"a","text":"\\ud800"}]}',
    b'{"goal":"\\ud800"}',
    b'{"goal":"x","inputs":[{"name":"a\\u0000b","text":"x"}]}',
    b'{"goal":"x","\\ud800":1}',
    b"Count\0to ten.",
    b"\xed\xa0\x80",
)
"""None of them has an id, so that nothing but a dead letter comes of them."""
_OF_EACH = 5


@pytest.mark.blocks_loop  # hundreds of refusals at once, each logged with its reason
async def test_goals_that_cannot_be_read_are_delivered_once(client: Client) -> None:
    """Each poisonous goal is delivered once and is a dead letter; those before, among and behind them are on record."""
    plane, deliveries = Plane(), Counter[str]()

    async def take(delivery: Delivery) -> None:
        deliveries[delivery.identity] += 1
        await plane.intake.accept(delivery.subject, delivery.data, delivery.identity)

    js = client.jetstream()
    for number in range(_OF_EACH):
        await js.publish(
            subjects.goal_of(LOCAL), json.dumps({"goal": "Count.", "goal_id": f"good-{number}"}).encode(), stream=GOALS
        )
        for data in POISON:
            await js.publish(subjects.goal_of(LOCAL), data, stream=GOALS)

    async def left() -> int:
        return int((await js.stream_info(GOALS)).state.messages)

    async with beside(consume(client, GOALS, intake_consumer(LOCAL), take, set_aside=nothing_is_poison, max_concurrent=16)):
        await eventually(left, lambda count: count == 0)
    assert (sum(deliveries.values()), max(deliveries.values())) == (_OF_EACH * (1 + len(POISON)), 1)
    assert {record.goal.goal_id for record in plane.goals.all()} == {f"good-{number}" for number in range(_OF_EACH)}
    assert Counter(letter.data for letter in plane.dead.letters) == dict.fromkeys(POISON, _OF_EACH)


async def test_a_text_longer_than_any_is_refused() -> None:
    """The bound of all texts is above that of a goal with what comes inline."""
    plane = Plane()
    text = "x" * (MAX_TEXT_CHARS + 1)
    await plane.intake.accept(
        subjects.goal_of(LOCAL), json.dumps({"goal": "x", "inputs": [{"name": "a", "text": text}]}).encode(), "1"
    )
    assert [letter.reason for letter in plane.dead.letters] == ["too_large"]
