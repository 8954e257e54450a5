"""Whatever stands in a goal, it is refused, or taken in and comes to its end."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import msgpack
import pytest

from ioa.errors import IoaError, UnavailableError
from ioa.group.requests import LaunchGroup
from ioa.protocol.codec import decode, encode
from ioa.protocol.goal_order import find_goal_id
from ioa.protocol.goals import GoalRecord
from ioa.protocol.ids import LOCAL, GoalName
from ioa.protocol.tickets import ticket_of
from ioa.testing.memory_goals import MemoryTickets
from tests.unit.extremes.logged import no_bug_logged
from tests.unit.extremes.places import spelt
from tests.unit.growth.sweep import TOLD
from tests.unit.runtime.plane import ADA, BOB, Plane

_GOAL: Mapping[str, Any] = {
    "goal": "Count.",
    "goal_id": "g",
    "agent": ADA,
    "max_turns": 5,
    "max_tokens": 1_000,
    "max_cost": 1.5,
    "timeout": 60,
    "inputs": [{"name": "a.csv", "text": "x"}],
    "traceparent": f"00-{'a' * 32}-{'b' * 16}-01",
    "result_format": "json",
    "repetition": "off",
    "labels": {"a": "b"},
}
_WITH_TEAM = {"goal": "Count.", "goal_id": "g", **TOLD["GoalOrder"]}
_MOST_TIMERS = 50_000


def _goals() -> Iterator[tuple[str, bytes]]:
    for base in (_GOAL, _WITH_TEAM):
        yield from spelt(base)


@pytest.mark.blocks_loop  # what is sent is made on it
async def test_whatever_a_goal_says_it_is_refused_or_ends() -> None:
    """A dead letter says why, or its group ends, at its deadline at the latest."""
    with no_bug_logged():
        await _try_all()


async def _try_all() -> None:
    plane = Plane()
    await plane.join(ADA, BOB)
    taken: dict[GoalName, str] = {}
    for number, (place, data) in enumerate(_goals()):
        data = data.replace(b'"goal_id": "g"', f'"goal_id": "g{number}"'.encode())
        find_goal_id(data)
        try:
            name = await plane.intake.accept(f"ioa.v1.goal.{LOCAL}", data, f"published-{number}")
        except UnavailableError:
            continue  # whom it names may come yet
        except Exception as error:
            error.add_note(place)
            raise
        if name is not None:
            taken[name] = place
            await _lead(plane, name)
    assert taken
    await plane.run_timers(_MOST_TIMERS)
    for name, place in taken.items():
        assert await plane.results.get(name) is not None, place


async def _lead(plane: Plane, name: GoalName) -> None:
    """Open the group of a goal, if its team is there."""
    record = await plane.goals.find(name.comm_id)
    assert record is not None
    assert decode(GoalRecord, encode(record)) == record
    ticket, policy = ticket_of(MemoryTickets.key, name), record.goal.policy
    request = LaunchGroup(owner=ADA, members=(BOB,), goal_id=name.goal_id, user=name.user, ticket=ticket, policy=policy)
    try:
        await plane.setup.launch(request)
    except IoaError:
        return
    for stored in await plane.log.read(name.comm_id, after=0, limit=10):
        msgpack.unpackb(encode(stored.entry))
