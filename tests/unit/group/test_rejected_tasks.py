"""Rejecting a result: with any message of the floor holder, before what else it says, and all of it or nothing."""

from __future__ import annotations

import pytest

from ioa.group.folding import KEPT
from ioa.group.rejection import RejectionCode
from ioa.group.state import ClosedTask
from ioa.group.tasks import MAX_WHY_CHARS
from ioa.protocol.ids import AgentId, TaskId
from ioa.protocol.messages import (
    AsyncTaskAssignment,
    ConcludeGroupDiscussion,
    Conclusion,
    Discussion,
    Pause,
    Payload,
    RejectedTask,
    SyncTaskAssignment,
    TaskOutcome,
)
from tests.unit.group.scenario import Scenario, launched, rejected, said, specs

WRONG = rejected("t1-1")


def _done() -> Scenario:
    """A group in which one task is done and another one runs."""
    return launched("ada", "bob", "eve").assigns("ada", "t1-1:bob", "t1-2:eve").progresses("t1-2").finishes("t1-1")


@pytest.mark.parametrize(
    "payload",
    [
        Discussion(content="No.", next_speaker=AgentId("bob"), rejects=WRONG),
        SyncTaskAssignment(tasks=specs(("t2-1:bob",)), rejects=WRONG),
        AsyncTaskAssignment(tasks=specs(("t2-1:bob:t1-1",)), rejects=WRONG),
        Pause(triggers=(TaskId("t1-2"),), rejects=WRONG),
    ],
    ids=lambda payload: payload.type,
)
def test_any_message_of_the_floor_holder_may_reject(payload: Payload) -> None:
    """The task counts as rejected, with the reason, and the message does what it does."""
    story = _done().speaks("ada", payload)
    task = story.state.task(TaskId("t1-1"))
    assert isinstance(task, ClosedTask)
    assert (task.outcome, task.why, story.state.turns_taken) == (TaskOutcome.REJECTED, "t1-1 is wrong", 2)


@pytest.mark.parametrize("at_once", [True, False])
def test_a_conclusion_may_reject(at_once: bool) -> None:
    """Whether it comes with its announcement or behind it."""
    story, last = _done().finishes("t1-2"), Conclusion(content="Half of it.", rejects=WRONG)
    story = story.speaks("ada", ConcludeGroupDiscussion(conclusion=last)) if at_once else story.announces("ada").speaks("ada", last)
    assert (story.phase.is_terminal, story.outcome("t1-1")) == (True, TaskOutcome.REJECTED)


def test_one_illegal_part_refuses_all() -> None:
    """Nothing is rejected by a message that is refused."""
    story = _done()
    refused = [
        story.refusal(said("ada", Discussion(content="No.", next_speaker=AgentId("bob"), rejects=rejected("t1-1", "t1-2")), 2)),
        story.refusal(said("ada", SyncTaskAssignment(tasks=specs(("t2-1:mallory",)), rejects=WRONG), 2)),
    ]
    assert ([one.code for one in refused], story.outcome("t1-1")) == (
        [RejectionCode.BAD_REJECT, RejectionCode.BAD_ASSIGNEE],
        TaskOutcome.DONE,
    )


def test_what_used_a_rejected_task_is_not_touched() -> None:
    """Whoever rejects names it too, if it is to go."""
    story = launched("ada", "bob").assigns_and_waits("ada", "t1-1:bob", "t1-2:bob:t1-1").finishes("t1-1").finishes("t1-2")
    assert story.rejects("ada", "t1-1", to="bob").outcome("t1-2") is TaskOutcome.DONE


def test_the_state_keeps_little_of_the_reason() -> None:
    """It stands in the message; the state stays small."""
    long = (RejectedTask(task_id=TaskId("t1-1"), why="x" * 2_000),)
    task = _done().speaks("ada", Pause(triggers=(TaskId("t1-2"),), rejects=long)).state.task(TaskId("t1-1"))
    assert isinstance(task, ClosedTask)
    assert len(task.why) == MAX_WHY_CHARS


def test_rejected_tasks_are_counted_when_they_leave_the_state() -> None:
    """Discovery is told by these numbers how an agent did."""
    story = launched("ada", "bob", max_turns=KEPT + 10).assigns_and_waits("ada", "t1-1:bob").finishes("t1-1")
    story = story.rejects("ada", "t1-1", to="bob").says("bob", to="ada")
    for _ in range(KEPT + 2):
        turn = story.state.turn
        story = story.assigns_and_waits("ada", f"t{turn}-x:bob").finishes(f"t{turn}-x")
    assert [one.rejected for one in story.state.folded] == [1]
