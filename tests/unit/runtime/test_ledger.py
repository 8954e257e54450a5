"""Taking groups forward: one guarded append decides, an armed timer always watches, and nothing is owed for long."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence
from datetime import timedelta
from typing import Any, TypeVar

import pytest

from ioa.errors import PayloadTooLargeError, UnavailableError
from ioa.group.events import CancelRequested, MemberLost, Said
from ioa.group.rejection import IllegalEventError, RejectionCode
from ioa.protocol.goals import Reason
from ioa.protocol.ids import CommId, TaskId
from ioa.protocol.messages import (
    AsyncTaskAssignment,
    ConcludeGroupDiscussion,
    Conclusion,
    Discussion,
    InformTaskProgress,
    Phase,
    SyncTaskAssignment,
)
from tests.rig.memory_log import Mishap
from tests.unit.group.scenario import COMM, START, launched, said, specs
from tests.unit.group.walk import any_event
from tests.unit.runtime.plane import ADA, BOB, EVE, ROOM, Plane

T = TypeVar("T")


async def test_an_entry_is_shown_to_every_member_with_its_place(opened: Plane) -> None:
    """Each member is pushed every entry once, with its sequence and the one before it."""
    await opened.says(ADA, Discussion(content="You.", next_speaker=BOB))
    seqs = [stored.seq for stored in await opened.entries()]
    shown = [[(entry.seq, entry.previous_seq) for entry in opened.inboxes.of(agent_id)] for agent_id in (ADA, BOB)]
    assert shown == [[(seqs[0], 0), (seqs[1], seqs[0])]] * 2


async def test_a_clock_that_was_set_back_leaves_no_group_unwatched(opened: Plane) -> None:
    """A timer that has fired is not taken for one that is still to come when the clock goes back behind it."""
    opened.clock.advance(timedelta(seconds=70))
    opened.timers.take_due()
    await opened.ledgers[0].record(CommId("elsewhere"), opened.begin(CommId("elsewhere"), ADA, BOB))
    opened.clock.advance(timedelta(seconds=-20))
    await opened.says(ADA, Discussion(content="You.", next_speaker=BOB))
    assert min(opened.timers.pending(ROOM)) == (await opened.state()).next_deadline()


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


async def test_a_stale_memory_refuses_nothing(opened: Plane) -> None:
    """What is illegal in the state a replica remembers is judged again on the log's head."""
    await opened.says(ADA, Discussion(content="You.", next_speaker=BOB), router=0)
    await opened.says(BOB, Discussion(content="No, you.", next_speaker=ADA), router=1)
    answer = await opened.says(ADA, ConcludeGroupDiscussion(), router=0)
    assert answer.outcome == "accepted"


async def test_a_stale_memory_accepts_nothing_illegal(opened: Plane) -> None:
    """What is legal in the state a replica remembers, but not in the log, is refused and leaves no trace."""
    late = await opened.message(ADA, Discussion(content="Late.", next_speaker=BOB))
    await opened.says(ADA, ConcludeGroupDiscussion(), router=1)
    answer = await opened.send(late, 0)
    assert (answer.outcome, len(await opened.entries())) == ("rejected", 2)


async def test_an_append_that_was_stored_unanswered_counts(opened: Plane) -> None:
    """When the answer to an append is lost, the ledger finds its entry, reports its sequence, and pays what it owes."""
    opened.log.fail_next_append(Mishap.STORED_UNANSWERED)
    recorded = await opened.ledgers[0].record(ROOM, CancelRequested(at=opened.clock.now()))
    entries = await opened.entries()
    assert (recorded.seq, len(entries), await opened.reason()) == (entries[-1].seq, 2, Reason.CANCELLED)


async def test_append_that_was_not_stored_raises(opened: Plane) -> None:
    """When an append is lost, the caller hears that it may try again, and trying again records the event once."""
    message = await opened.message(ADA, Discussion(content="You.", next_speaker=BOB))
    opened.log.fail_next_append(Mishap.NOT_STORED)
    with pytest.raises(UnavailableError):
        await opened.send(message)
    assert (await opened.send(message)).outcome == "accepted"
    assert len(await opened.entries()) == 2


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


async def test_nothing_is_appended_without_an_armed_timer(plane: Plane) -> None:
    """While no timer can be armed no group moves, so that none can be left without one."""
    before = await plane.open(ADA, BOB)
    plane.clock.advance(timedelta(seconds=59.5))
    plane.timers.reachable = False
    with pytest.raises(UnavailableError):
        await plane.says(ADA, Discussion(content="You.", next_speaker=BOB))
    assert await plane.state() == before


async def test_timers_are_not_armed_for_every_message(opened: Plane) -> None:
    """A timer that fires early enough serves later deadlines too: it looks, and arms the next."""
    armed = len(opened.timers.pending(ROOM))
    for number, (speaker, other) in enumerate(((ADA, BOB), (BOB, ADA)) * 4):
        opened.clock.advance(timedelta(milliseconds=10))
        await opened.says(speaker, Discussion(content=f"Point {number}.", next_speaker=other))
    assert len(opened.timers.pending(ROOM)) == armed


async def test_a_timer_that_fires_during_a_slow_append_is_replaced(opened: Plane) -> None:
    """An append that outlasts the timer armed before it arms another, since the first one saw the old state."""

    def dawdle() -> None:
        opened.clock.advance(timedelta(seconds=200))
        assert opened.timers.take_due()

    opened.log.on_append = dawdle
    await opened.says(ADA, AsyncTaskAssignment(tasks=specs(("t1-1:bob",))))
    due = (await opened.state()).next_deadline()
    assert due is not None
    assert min(opened.timers.pending(ROOM)) <= max(due, opened.clock.now())


async def test_a_lost_effect_is_made_up_for(opened: Plane) -> None:
    """A router that ends a group and cannot publish the result leaves a timer that brings another one to do it."""
    await opened.says(ADA, ConcludeGroupDiscussion())
    opened.results.reachable = False
    with pytest.raises(UnavailableError):
        await opened.says(ADA, Conclusion(content="Ten."))
    assert await opened.reason() is None
    opened.results.reachable = True
    opened.clock.advance(timedelta(seconds=3))
    await opened.fire_due(router=1)
    assert await opened.reason() is Reason.CONCLUDED


async def test_a_refused_event_changes_nothing(opened: Plane) -> None:
    """An illegal event raises with its code; log, inboxes and results stay as they were."""
    before = (await opened.entries(), list(opened.inboxes.of(ADA)))
    with pytest.raises(IllegalEventError) as refused:
        await opened.ledgers[0].record(ROOM, MemberLost(at=opened.clock.now(), agent_id=EVE))
    assert refused.value.code is RejectionCode.NO_CHANGE
    assert (await opened.entries(), list(opened.inboxes.of(ADA))) == before


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
        due = (await plane.state()).next_deadline()
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
