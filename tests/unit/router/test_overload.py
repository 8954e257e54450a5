"""What one group's load costs others: late messages are rejected, and progress stays out of the log."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import pytest

from ioa.errors import PayloadTooLargeError
from ioa.group.events import EncodedEntry, Said
from ioa.group.rejection import RejectionCode
from ioa.group.requests import Rejected
from ioa.ports.group_log import StoredEntry
from ioa.protocol.goals import Reason
from ioa.protocol.ids import CommId, TaskId
from ioa.protocol.messages import (
    ConcludeGroupDiscussion,
    Conclusion,
    Discussion,
    InformTaskProgress,
    Phase,
    SyncTaskAssignment,
)
from ioa.protocol.usage import Usage
from tests.unit.group.scenario import specs
from tests.unit.runtime.plane import ADA, BOB, ROOM, Plane, messages_of

T1 = TaskId("t1-1")


async def _at_work(plane: Plane, *, max_tokens: int | None = None) -> None:
    """Give Bob a task that he has acknowledged."""
    await plane.open(ADA, BOB, max_tokens=max_tokens)
    await plane.says(ADA, SyncTaskAssignment(tasks=specs(("t1-1:bob",))))
    await plane.says(BOB, InformTaskProgress(task_id=T1, number=1))


async def test_a_message_that_waited_past_the_deadline_came_too_late(plane: Plane) -> None:
    """What counts is when a message's turn at the group has come, not when it arrived."""
    await plane.open(ADA, BOB, timeout=timedelta(seconds=45))
    message = await plane.message(ADA, Discussion(content="You.", next_speaker=BOB))
    lock = plane.ledgers[0]._known.of(ROOM).lock
    async with asyncio.TaskGroup() as group, lock:
        sending = group.create_task(plane.send(message))
        await asyncio.sleep(0)
        plane.clock.advance(timedelta(seconds=46))
    answer = sending.result()
    assert isinstance(answer, Rejected)
    assert (answer.code, messages_of(await plane.entries())) == (RejectionCode.TOO_LATE, [])


async def test_followers_receive_about_one_report_per_second(plane: Plane) -> None:
    """However often an assignee reports on a task, and however much it wants to say."""
    await _at_work(plane)
    for number in range(2, 32):
        await plane.says(BOB, InformTaskProgress(task_id=T1, number=number))
        plane.clock.advance(timedelta(milliseconds=100))
    with pytest.raises(PayloadTooLargeError, match="A progress report has"):
        await plane.says(BOB, InformTaskProgress(task_id=T1, number=32, content="x" * 20_000))
    assert [_number_of(said) for said in plane.progress.reports] == [2, 10, 18, 26]


def _number_of(said: Said) -> int:
    assert isinstance(said.message.payload, InformTaskProgress)
    return said.message.payload.number


async def test_usage_is_an_entry_where_there_is_a_budget() -> None:
    """A report of more usage than was counted is an entry where the group has a budget; above it the owner has to conclude."""
    plane, free = Plane(), Plane()
    await _at_work(plane, max_tokens=100)
    await _at_work(free)
    for one in (plane, free):
        await one.says(BOB, InformTaskProgress(task_id=T1, number=2, usage=Usage(tokens_out=60)))
        await one.says(BOB, InformTaskProgress(task_id=T1, number=3, usage=Usage(tokens_out=60)))
        await one.says(BOB, InformTaskProgress(task_id=T1, number=4, usage=Usage(tokens_out=100)))
    numbers = [_reported(await one.entries()) for one in (plane, free)]
    assert numbers == [[1, 2, 4], [1]]
    assert [(await one.state()).phase for one in (plane, free)] == [Phase.CONCLUDING, Phase.ASSIGNED]


def _reported(entries: Sequence[StoredEntry]) -> list[int]:
    said = [stored.entry.event.message.payload for stored in entries if isinstance(stored.entry.event, Said)]
    return [payload.number for payload in said if isinstance(payload, InformTaskProgress)]


async def test_a_copy_refused_for_its_lateness_alone_leaves_the_log_in_charge(
    plane: Plane, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An append under way when the deadline passes may land after a copy was refused: one entry, one result, and no other end."""
    await plane.open(ADA, BOB, timeout=timedelta(seconds=45))
    await plane.says(ADA, ConcludeGroupDiscussion())
    message = await plane.message(ADA, Conclusion(content="Ten."))
    append, under_way, go = plane.log.append, asyncio.Event(), asyncio.Event()

    async def append_late(comm_id: CommId, entry: EncodedEntry, *, expected_seq: int, **counted: Any) -> int:
        under_way.set()
        await go.wait()
        return await append(comm_id, entry, expected_seq=expected_seq, **counted)

    monkeypatch.setattr(plane.log, "append", append_late)
    async with asyncio.TaskGroup() as group:
        first = group.create_task(plane.send(message, 0))
        await under_way.wait()
        plane.clock.advance(timedelta(seconds=46))
        copy = await plane.send(message, 1)
        go.set()
    await plane.run_timers()
    assert (first.result().outcome, copy.outcome) == ("accepted", "rejected")
    assert (await plane.reason(), len(messages_of(await plane.entries()))) == (Reason.CONCLUDED, 2)
