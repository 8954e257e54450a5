"""Tasks that use others: they wait, start when all of those are done, and are cancelled when one of them comes to nothing."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest

from ioa.group.events import TimerFired
from ioa.group.folding import KEPT
from ioa.group.rejection import RejectionCode
from ioa.group.state import AwaitingAcks, ClosedTask
from ioa.protocol.goals import Reason
from ioa.protocol.ids import AgentId, TaskId
from ioa.protocol.messages import (
    AsyncTaskAssignment,
    ConcludeGroupDiscussion,
    Phase,
    SyncTaskAssignment,
    TaskOutcome,
    TaskSpec,
)
from tests.unit.group.scenario import START, Scenario, launched, rejected, said, specs


def _team() -> Scenario:
    return launched("ada", "bob", "eve")


def _chain() -> Scenario:
    """Three tasks of one message, the last named first."""
    return _team().assigns_and_waits("ada", "t1-c:ada:t1-b", "t1-b:eve:t1-a", "t1-a:bob")


def _fan_in() -> Scenario:
    """One task uses two others, and the discussion goes on."""
    return _team().assigns("ada", "t1-a:bob", "t1-b:eve", "t1-c:ada:t1-a,t1-b").progresses("t1-a").progresses("t1-b")


def _why(story: Scenario, task_id: str) -> str:
    task = story.state.task(TaskId(task_id))
    assert isinstance(task, ClosedTask)
    return task.why


def test_a_chain_of_one_message_runs_link_by_link() -> None:
    """Each task starts in the step that closes the one before it, whatever order they were named in; then the floor returns."""
    story, waiting = _chain(), []
    for task_id in ("t1-a", "t1-b", "t1-c"):
        waiting.append((story.waiting(), [task.task_id for task in story.state.open_tasks]))
        story = story.finishes(task_id)
    assert waiting == [(("t1-c", "t1-b"), ["t1-a"]), (("t1-c",), ["t1-b"]), ((), ["t1-c"])]
    assert (story.holder, story.phase) == ("ada", Phase.DISCUSSING)


def test_a_task_starts_when_the_last_that_it_uses_is_done() -> None:
    """Not before, and no floor changes by it."""
    story = _fan_in().finishes("t1-b")
    assert (story.waiting(), story.finishes("t1-a").waiting(), story.finishes("t1-a").holder) == (("t1-c",), (), "ada")


def test_lease_and_time_run_from_the_start() -> None:
    """However long a task has waited, its assignee has all of its time."""
    late = TaskSpec(
        task_id=TaskId("t1-b"), assignee=AgentId("eve"), task_desc="…", uses=(TaskId("t1-a"),), timeout=timedelta(seconds=40)
    )
    story = _team().speaks("ada", SyncTaskAssignment(tasks=(*specs(("t1-a:bob",)), late))).after(25).finishes("t1-a")
    task = story.open("t1-b")
    assert (task.lease_until, task.deadline) == (START + timedelta(seconds=55), START + timedelta(seconds=65))


def test_a_task_of_a_lost_member_starts_suspect() -> None:
    """It has one lease to be heard of, as a task has whose assignee is lost while it runs."""
    story = _chain().loses("eve").finishes("t1-a")
    assert (story.open("t1-b").suspect, story.timer().outcome("t1-b")) == (True, TaskOutcome.FAILED)


CAME_TO_NOTHING: list[tuple[Callable[[], Scenario], str]] = [
    (lambda: _chain().fails("t1-a"), "t1-a failed"),
    (lambda: _chain().timers(2), "t1-a failed"),
    (lambda: _chain().nests("t1-a").nested_ends("t1-a", reason=Reason.FAILED), "t1-a failed"),
    (
        lambda: _fan_in().finishes("t1-a").rejects("ada", "t1-a", to="bob"),
        "t1-a was rejected",
    ),
]


@pytest.mark.parametrize(("story", "why"), CAME_TO_NOTHING, ids=["failed", "lease", "nested-team", "rejected"])
def test_what_uses_a_task_that_came_to_nothing_is_cancelled(story: Callable[[], Scenario], why: str) -> None:
    """In the same step, saying because of which task."""
    told = story()
    waiter = "t1-b" if told.state.task(TaskId("t1-b")) and told.outcome("t1-b") else "t1-c"
    assert (told.outcome(waiter), _why(told, waiter), told.waiting()) == (TaskOutcome.CANCELLED, why, ())


def test_what_waits_for_a_cancelled_task_is_cancelled_too() -> None:
    """The whole chain ends at once, and the floor returns to who waits for it."""
    story = _chain().fails("t1-a")
    assert (_why(story, "t1-c"), story.holder) == ("t1-b was cancelled", "ada")


@pytest.mark.parametrize("end", ["done", "failed", "rejected"])
def test_a_task_that_is_closed_counts_as_finished_whatever_came_of_it(end: str) -> None:
    """What uses it starts at once: whoever gives it out knows how it ended."""
    given = _team().assigns("ada", "t1-a:bob")
    story = given.fails("t1-a") if end == "failed" else given.finishes("t1-a")
    again = SyncTaskAssignment(tasks=specs(("t2-b:eve:t1-a",)), rejects=rejected("t1-a") if end == "rejected" else ())
    assert story.speaks("ada", again).waiting() == ()


def test_an_open_task_may_be_used() -> None:
    """What uses it waits for it, across messages."""
    story = _team().assigns("ada", "t1-a:bob").progresses("t1-a").assigns_and_waits("ada", "t2-b:eve:t1-a")
    assert (story.phase, story.waiting(), story.finishes("t1-a").open("t2-b").turn) == (Phase.ASSIGNED, ("t2-b",), 2)


def test_an_asynchronous_task_that_waits_is_asked_for_no_answer() -> None:
    """The floor returns when those have answered that start at once; at once if none does."""
    story = _team().assigns("ada", "t1-a:bob", "t1-b:eve:t1-a")
    assert isinstance(story.state.stage, AwaitingAcks)
    answered = story.progresses("t1-a")
    at_once = answered.assigns("ada", "t2-c:eve:t1-b")
    assert (story.state.stage.waiting, answered.holder, at_once.holder, at_once.waiting()) == (
        ("t1-a",),
        "ada",
        "ada",
        ("t1-b", "t2-c"),
    )


def test_a_pause_may_wait_for_a_task_that_has_not_begun() -> None:
    """It ends when that one is closed."""
    story = _fan_in().pauses("ada", "t1-c").finishes("t1-a").finishes("t1-b")
    assert (story.phase, story.finishes("t1-c").holder) == (Phase.PAUSED, "ada")


def test_a_pause_ends_when_what_it_waits_for_is_cancelled() -> None:
    """A failure wakes who waits for what cannot begin any more."""
    assert _fan_in().pauses("ada", "t1-c").fails("t1-b").holder == "ada"


def test_a_waiting_task_is_in_the_way_of_a_conclusion() -> None:
    """The refusal names it with the open ones."""
    refused = _fan_in().refusal(said("ada", ConcludeGroupDiscussion(), 2))
    assert (refused.code, refused.message) == (RejectionCode.TASKS_OPEN, "Tasks are still open: t1-a, t1-b, t1-c.")


@pytest.mark.parametrize("end", ["turns", "budget", "cancel", "deadline"])
def test_a_forced_end_cancels_what_waits(end: str) -> None:
    """Nothing is left that could begin in a group that is to be concluded, or has ended."""
    story = {
        "turns": lambda: launched("ada", "bob", max_turns=1).assigns("ada", "t1-a:bob", "t1-b:ada:t1-a").progresses("t1-a"),
        "budget": lambda: _fan_in().out_of_budget(),
        "cancel": lambda: _chain().cancelled(),
        "deadline": lambda: _late(_chain()),
    }[end]()
    assert {task.task_id: story.outcome(task.task_id) for task in story.state.tasks} == {
        task.task_id: TaskOutcome.CANCELLED for task in story.state.tasks
    }


def _late(story: Scenario) -> Scenario:
    """Let the group's deadline pass."""
    late = story.after(86_400)
    return late.happens(TimerFired(at=late.now))


def test_what_a_task_waits_for_stays_in_the_state() -> None:
    """However many tasks are closed since, none that is named by a waiting one is folded."""
    story = launched("ada", "bob", "eve", max_turns=KEPT + 10).assigns("ada", "t1-a:bob", "t1-b:eve", "t1-c:ada:t1-a,t1-b")
    story = story.finishes("t1-a").progresses("t1-b")
    for _ in range(KEPT + 3):
        turn = story.state.turn
        story = story.assigns_and_waits("ada", f"t{turn}-x:bob").progresses("t1-b").finishes(f"t{turn}-x")
    assert (story.state.task(TaskId("t2-x")), story.outcome("t1-a"), story.finishes("t1-b").waiting()) == (
        None,
        TaskOutcome.DONE,
        (),
    )


def test_what_waiting_tasks_keep_in_the_state_is_bounded() -> None:
    """Tasks that wait for many others count for all that stays in the state for them, so that entries keep their size."""
    names = [f"t1-{number}" for number in range(32)]
    story = launched("ada", "bob", max_turns=9).assigns("ada", *(f"{name}:bob" for name in names))
    for name in names:
        story = story.progresses(name)

    def waiting(story: Scenario) -> AsyncTaskAssignment:
        turn, uses = story.state.turn, ",".join(names)
        return AsyncTaskAssignment(tasks=specs(tuple(f"t{turn}-{number}:bob:{uses}" for number in range(8))))

    story = story.speaks("ada", waiting(story))
    assert story.refusal(said("ada", waiting(story), story.state.turn, story.now)).code is RejectionCode.TOO_MANY_TASKS
