"""Limits of turns, leases and nesting, through routers, group setup and ledger."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest

from ioa.group.events import Said
from ioa.group.requests import Accepted
from ioa.group.state import ClosedTask
from ioa.protocol.ids import AgentId, TaskId
from ioa.protocol.messages import (
    Discussion,
    InformTaskProgress,
    InformTaskResult,
    Phase,
    SyncTaskAssignment,
    TaskOutcome,
    TaskSpec,
)
from tests.unit.runtime.plane import ADA, BOB, Plane, messages_of

WORDS = ("The river rises.", "Nobody owns a boat.", "Ask the miller about flour.", "Two bells rang at noon.", "Paint dries slowly.")
T1 = TaskId("t1-1")


def _task(task_id: str = T1, assignee: AgentId = BOB) -> TaskSpec:
    return TaskSpec(task_id=TaskId(task_id), assignee=assignee, task_desc="Count the bells.")


@pytest.mark.parametrize("turns", [1, 5])
async def test_two_routers_that_race_for_each_turn_take_no_turn_more(plane: Plane, turns: int) -> None:
    """For every turn two messages arrive at once, one at each router, until no turn is left: N messages stand, and not one more."""
    await plane.open(ADA, BOB, max_turns=turns)
    for number in range(turns + 2):
        state = await plane.state()
        speaker = state.floor_holder
        assert speaker is not None
        other = BOB if speaker == ADA else ADA
        texts = (f"{WORDS[number % 5]} Number {number}.", f"Something else altogether, the {number}th time.")
        both = [await plane.message(speaker, Discussion(content=text, next_speaker=other)) for text in texts]
        await asyncio.gather(*(plane.send(message, router) for router, message in enumerate(both)))
    state = await plane.state()
    assert (len(messages_of(await plane.entries())), state.turns_taken, state.phase) == (turns, turns, Phase.CONCLUDING)


async def _report(plane: Plane) -> None:
    """Let whoever works report progress."""
    for task in (await plane.state()).open_tasks:
        await plane.says(task.assignee, InformTaskProgress(task_id=task.task_id, number=task.progress + 1))


async def test_a_ten_minute_task_under_a_lease_of_thirty_seconds_runs_once(opened: Plane) -> None:
    """As long as it reports, nothing takes the task away, and its result counts; the log holds the first report and no other."""
    await opened.says(ADA, SyncTaskAssignment(tasks=(_task(),)))
    for _ in range(60):
        opened.clock.advance(timedelta(seconds=10))
        await opened.fire_due()
        await _report(opened)
    answer = await opened.says(BOB, InformTaskResult(task_id=T1, task_conclusion="Twelve bells."))
    task, entries = (await opened.state()).task(T1), await opened.entries()
    said = [stored.entry.event.message.payload for stored in entries if isinstance(stored.entry.event, Said)]
    reports = [payload.number for payload in said if isinstance(payload, InformTaskProgress)]
    suspected = [task for stored in entries for task in stored.entry.state.open_tasks if task.suspect]
    assert isinstance(answer, Accepted) and isinstance(task, ClosedTask)
    assert (task.outcome, reports, suspected) == (TaskOutcome.DONE, [1], [])
