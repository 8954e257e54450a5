"""Taking groups forward: one guarded append decides, an armed timer always watches, and nothing is owed for long."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence
from datetime import timedelta
from typing import Any, TypeVar

import pytest

from ioa.errors import PayloadTooLargeError, UnavailableError
from ioa.group.deadlines import next_deadline
from ioa.group.events import CancelRequested, Said
from ioa.group.rejection import IllegalEventError
from ioa.protocol.ids import TaskId
from ioa.protocol.messages import (
    AsyncTaskAssignment,
    ConcludeGroupDiscussion,
    InformTaskProgress,
    Phase,
    SyncTaskAssignment,
)
from tests.rig.memory_log import Mishap
from tests.unit.group.scenario import COMM, START, launched, said, specs
from tests.unit.group.walk import any_event
from tests.unit.runtime.plane import ADA, BOB, EVE, ROOM, Plane

T = TypeVar("T")


async def test_both_of_two_racing_events_are_recorded(plane: Plane) -> None:
    """Two replicas that record different legal events at once both get their place, and the states follow from the order."""
    await plane.open(ADA, BOB, EVE)
    await plane.says(ADA, SyncTaskAssignment(tasks=specs(("t1-1:bob", "t1-2:eve"))))
    reports = [
        await plane.message(agent_id, InformTaskProgress(task_id=TaskId(task_id), number=1))
        for agent_id, task_id in ((BOB, "t1-1"), (EVE, "t1-2"))
    ]
    await asyncio.gather(*(plane.send(report, router) for router, report in enumerate(reports)))
    entries = await plane.entries()
    assert (len(entries), await plane.replayed()) == (4, [stored.entry.state for stored in entries])


async def test_unanswered_append_is_not_taken_for_a_message_of_another_sender(
    opened: Plane, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If two members choose the same message id, an append that fails is not taken for the other member's entry."""
    await opened.says(ADA, AsyncTaskAssignment(tasks=specs(("t1-1:ada", "t1-2:bob"))))
    of_ada, of_bob = [
        await opened.message(agent_id, InformTaskProgress(task_id=TaskId(task_id), number=1))
        for agent_id, task_id in ((ADA, "t1-1"), (BOB, "t1-2"))
    ]
    of_bob = of_bob.model_copy(update={"header": of_bob.header.model_copy(update={"message_id": of_ada.header.message_id})})

    async def lose_race(*args: Any, **options: Any) -> int:
        monkeypatch.undo()
        await opened.ledgers[1].say(ROOM, of_bob)
        raise UnavailableError("The log does not answer.")

    monkeypatch.setattr(opened.log, "append", lose_race)
    await opened.ledgers[0].say(ROOM, of_ada)
    senders = [
        stored.entry.event.message.header.sender for stored in await opened.entries() if isinstance(stored.entry.event, Said)
    ]
    assert senders == [ADA, BOB, ADA]


async def test_a_timer_that_fires_during_a_slow_append_is_replaced(opened: Plane) -> None:
    """An append that outlasts the timer armed before it arms another, since the first one saw the old state."""

    def dawdle() -> None:
        opened.clock.advance(timedelta(seconds=200))
        assert opened.timers.take_due()

    opened.log.on_append = dawdle
    await opened.says(ADA, AsyncTaskAssignment(tasks=specs(("t1-1:bob",))))
    due = next_deadline(await opened.state())
    assert due is not None
    assert min(opened.timers.pending(ROOM)) <= max(due, opened.clock.now())


@pytest.mark.parametrize("seed", range(40))
async def test_an_open_group_always_has_a_timer_in_time(seed: int) -> None:
    """Whatever happens on whichever replica, a timer is armed for the next deadline or sooner, and timers alone end the group."""
    rng, plane = random.Random(seed), Plane()
    await plane.ledgers[0].record(ROOM, plane.begin(ROOM, ADA, BOB, EVE, max_turns=rng.choice((3, 12))))
    for _ in range(60):
        if rng.random() < 0.3:
            plane.clock.advance(timedelta(seconds=rng.choice((0.2, 5, 29.9, 30, 61, 700))))
            await plane.fire_due(rng.randrange(2))
        await _anything(plane, rng)
        due = next_deadline(await plane.state())
        assert due is None or min(plane.timers.pending(ROOM)) <= max(due, plane.clock.now())
    await plane.run_timers()
    entries = await plane.entries()
    assert (await plane.state()).phase.is_terminal
    assert await plane.replayed() == [stored.entry.state for stored in entries]


async def _anything(plane: Plane, rng: random.Random) -> None:
    """Let a replica record any event, legal or not, now and then with a mishap."""

    def choose(options: Sequence[T], /) -> T:
        return rng.choice(options)

    event = any_event(await plane.state(), plane.clock.now(), choose)
    if isinstance(event, Said):
        header = event.message.header.model_copy(update={"comm_id": ROOM, "message_id": plane.ids.new("m")})
        event = event.model_copy(update={"message": event.message.model_copy(update={"header": header})})
    if rng.random() < 0.1:
        plane.log.fail_next_append(rng.choice(tuple(Mishap)))
    try:
        await plane.ledgers[rng.randrange(2)].record(ROOM, event)
    except (IllegalEventError, UnavailableError):
        return


async def test_a_message_that_does_not_fit_is_refused_to_its_sender(plane: Plane) -> None:
    """Nothing is recorded, and the group goes on."""
    story = launched("ada", "bob")
    await plane.ledgers[0].record(COMM, story.log[0])
    with pytest.raises(PayloadTooLargeError):
        await plane.ledgers[0].record(COMM, CancelRequested(at=START, why="x" * 1_000_000))
    recorded = await plane.ledgers[0].record(COMM, said("ada", ConcludeGroupDiscussion(), 1))
    assert recorded.state.phase is Phase.CONCLUDING
