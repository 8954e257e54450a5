"""The log checker accepts a correct run, and finds each removed, repeated or changed item."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta

import pytest

from ioa.group.requests import SequencedEntry
from ioa.ports.group_log import StoredEntry
from ioa.protocol.ids import LOCAL, GoalName, TaskId
from ioa.protocol.messages import (
    ConcludeGroupDiscussion,
    Conclusion,
    InformTaskResult,
    SyncTaskAssignment,
    TaskSpec,
)
from tests.rig.log_checker import (
    Acceptance,
    Evidence,
    TaskRun,
    check,
)
from tests.unit.runtime.plane import ADA, BOB, GOAL, ROOM, Plane

_RUNS = [TaskRun(BOB, f"work {ROOM}/t1-1", 1, returned=False), TaskRun(BOB, f"work {ROOM}/t1-1", 1, returned=True)]


async def _whole() -> Evidence:
    """A goal with one task, from its launch to its end."""
    plane = Plane()
    await plane.open(ADA, BOB)
    task = TaskSpec(task_id=TaskId("t1-1"), assignee=BOB, task_desc=f"work {ROOM}/t1-1")
    await plane.says(ADA, SyncTaskAssignment(tasks=(task,)))
    plane.clock.advance(timedelta(seconds=2))
    await plane.says(BOB, InformTaskResult(task_id=TaskId("t1-1"), task_conclusion="done in attempt 1"))
    await plane.says(ADA, ConcludeGroupDiscussion())
    await plane.says(ADA, Conclusion(content="Ten."))
    result = await plane.results.get(GoalName(LOCAL, GOAL))
    assert result is not None
    log = await plane.entries()
    said = [stored for stored in log if stored.entry.event.type == "said"]
    return Evidence(
        goals=[GOAL],
        results=[result],
        logs={ROOM: log},
        records={agent_id: {ROOM: list(plane.inboxes.of(agent_id))} for agent_id in (ADA, BOB)},
        accepted=[Acceptance(ROOM, stored.entry.event.message.header.message_id, stored.seq) for stored in said],  # type: ignore[union-attr]
        runs=_RUNS,
        answers={GOAL: "Ten."},
        absences=[],
    )


def _log(evidence: Evidence, change: Callable[[list[StoredEntry]], list[StoredEntry]]) -> Evidence:
    return replace(evidence, logs={ROOM: change(list(evidence.logs[ROOM]))})


def _record(evidence: Evidence, change: Callable[[list[SequencedEntry]], list[SequencedEntry]]) -> Evidence:
    return replace(evidence, records={**evidence.records, BOB: {ROOM: change(list(evidence.records[BOB][ROOM]))}})


def _run_again(evidence: Evidence) -> Evidence:
    return replace(evidence, runs=[*_RUNS, replace(_RUNS[0], attempt=2)])


def _ended(evidence: Evidence, **changed: object) -> Evidence:
    """With another end of the goal, in its result alone."""
    return replace(evidence, results=[evidence.results[0].model_copy(update=changed)])


_WRONGS: dict[str, tuple[Callable[[Evidence], Evidence], str]] = {
    "a goal without result": (lambda e: replace(e, results=[]), "has 0 results"),
    "another result": (
        lambda e: replace(e, results=[e.results[0].model_copy(update={"content": "Nine."})]),
        "is not what its group",
    ),
    "another answer": (lambda e: replace(e, answers={GOAL: "Nine."}), "was concluded with 'Ten.', not 'Nine.'"),
    "a lost message": (lambda e: _log(e, lambda log: log[:2] + log[3:]), "was accepted into"),
    "a doubled message": (lambda e: _log(e, lambda log: [*log, log[-1]]), "is 2 times in"),
    "a member with a gap": (lambda e: _record(e, lambda record: record[:1] + record[2:]), "has a gap"),
    "a task run after its result": (_run_again, "was run again after it had finished"),
    "two runs in one attempt": (lambda e: replace(e, runs=[*_RUNS, *_RUNS]), "was begun twice in one attempt: [1, 1]"),
    "an open group": (lambda e: replace(_log(e, lambda log: log[:-1]), accepted=(), records={}), "no timer is armed"),
}


async def test_log_of_a_correct_run_has_no_finding() -> None:
    """There is nothing to find in a whole conversation; in one whose timer is still to come, only that it has no result yet."""
    whole = await _whole()
    running = replace(_log(whole, lambda log: log[:2]), results=[], records={}, accepted=(), timers=frozenset({ROOM}))
    assert (check(whole), check(running)) == ([], ["Goal goal-1 has 0 results, not one."])


@pytest.mark.parametrize("wrong", _WRONGS)
async def test_checker_finds_each_fault(wrong: str) -> None:
    """Whatever is taken away, doubled or changed is named."""
    change, said = _WRONGS[wrong]
    assert any(said in found for found in check(change(await _whole())))
