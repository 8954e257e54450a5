"""The state stays small: closed tasks leave it once nothing names them, and what members write is kept in the log alone."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest

from ioa.group.events import Entry, encode_entry
from ioa.group.limits import MAX_OPEN_TASKS
from ioa.group.rejection import IllegalEventError, RejectionCode
from ioa.group.state import ClosedTask
from ioa.group.tasks import KEPT, MAX_WHY_CHARS
from ioa.protocol.codec import decode, encode
from ioa.protocol.ids import TaskId
from ioa.protocol.messages import (
    AskUser,
    AsyncTaskAssignment,
    InformTaskProgress,
    InformTaskResult,
    Pause,
    RejectedTask,
    TaskOutcome,
)
from tests.unit.group.scenario import WELL, Scenario, launched, said, specs


def done(story: Scenario, tasks: int, assignee: str = "bob") -> Scenario:
    """Give out tasks one after the other, each of which is done at once."""
    for _ in range(tasks):
        name = f"t{story.state.turn}-x"
        story = story.assigns_and_waits("ada", f"{name}:{assignee}").finishes(name)
    return story


@cache
def busy() -> Scenario:
    """A group in which ten tasks of Eve's have left the state."""
    return done(done(launched("ada", "bob", "eve", max_turns=5_000), 10, "eve"), KEPT)


def entry_bytes(story: Scenario) -> int:
    """The size of the last entry."""
    return len(encode_entry(Entry(event=story.log[-1], state=story.state, audience=story.state.hearing)).data)


def test_old_closed_tasks_are_only_counted() -> None:
    """The outcome of each is known for a while; later only their number."""
    state = busy().state
    assert (len(state.tasks), state.folded, state.tasks_given) == (KEPT, 10, KEPT + 10)


def test_entry_does_not_grow_with_the_tasks() -> None:
    """After 1,000 tasks an entry has about the size that it had after 100."""
    story = done(launched("ada", "bob", max_turns=5_000), 100)
    small = entry_bytes(story)
    assert entry_bytes(done(Scenario(story.state, story.log[-1:]), 900)) < 1.05 * small < 5_000


@pytest.mark.parametrize("how", ["closed late", "paused on", "team has a loan", "waited for"])
def test_closed_task_that_is_still_needed_stays(how: str) -> None:
    """It is seen to close, a pause and a waiting task name it, and its team has yet to return its loan; then it leaves."""
    story = launched("ada", "bob", "eve", max_turns=500)
    if how == "closed late":
        story = done(story.assigns("ada", "t1-1:eve").progresses("t1-1"), KEPT + 5).finishes("t1-1")
        later = done(story, 20)
    elif how == "paused on":
        story = story.assigns("ada", "t1-1:eve", "t1-2:eve").progresses("t1-1").progresses("t1-2")
        story = done(story, KEPT + 5).pauses("ada", "t1-1", "t1-2").finishes("t1-1").progresses("t1-2").progresses("t1-2")
        later = done(story.finishes("t1-2"), 20)
    elif how == "team has a loan":
        story = done(story.assigns("ada", "t1-1:eve").nests("t1-1").finishes("t1-1"), KEPT + 15)
        later = story.nested_ends("t1-1").says("ada", to="bob")
    else:
        story = story.assigns("ada", "t1-1:bob", "t1-2:eve", "t1-3:ada:t1-1,t1-2").finishes("t1-1").progresses("t1-2")
        for _ in range(KEPT + 3):
            story = done(story, 1).progresses("t1-2")
        later = done(story.finishes("t1-2").finishes("t1-3"), 20)
    assert (story.outcome("t1-1"), later.state.task(TaskId("t1-1"))) == (TaskOutcome.DONE, None)


def test_task_that_has_left_can_be_used_and_named_and_takes_no_report() -> None:
    """Its id tells that it is of an earlier turn, and its assignee has the result from the log; others never were."""
    story, turn = busy(), busy().state.turn
    assert len(story.assigns("ada", f"t{turn}-y:bob:t3-x").state.open_tasks) == 1
    assert story.assigns("ada", f"t{turn}-y:bob").progresses(f"t{turn}-y").pauses("ada", "t3-x").holder == "ada"
    for unknown in ("t9999-x", "sum", f"t{turn}-z"):
        using = AsyncTaskAssignment(tasks=specs((f"t{turn}-y:bob:{unknown}",)))
        assert story.refusal(said("ada", using, turn)).code is RejectionCode.UNKNOWN_TASK
    for report in (
        InformTaskResult(task_id=TaskId("t2-x"), task_conclusion="…"),
        InformTaskProgress(task_id=TaskId("t2-x"), number=9),
    ):
        assert story.refusal(said("eve", report, 2)).code is RejectionCode.TASK_CLOSED


def test_state_with_many_tasks_is_read_back_as_it_was() -> None:
    """Each task is encoded once, without its default values."""
    turn = busy().state.turn
    story = busy().assigns("ada", *(f"t{turn}-{number}:bob" for number in range(5))).nests(f"t{turn}-1").timer()
    entry = Entry(event=story.log[-1], state=story.state, audience=())
    twice = [encode_entry(entry).data for _ in range(2)]
    assert (twice[0] == twice[1], decode(Entry, twice[0])) == (True, entry)


def test_open_and_waiting_tasks_are_bounded() -> None:
    """Tasks that wait for many others count for all that stays in the state for them."""
    names = [f"t1-{number}" for number in range(MAX_OPEN_TASKS // 2)]
    story = launched("ada", "bob").assigns("ada", *(f"{name}:bob" for name in names))
    for name in names:
        story = story.progresses(name)
    full = story.assigns("ada", *(f"t2-{number}:bob:t1-0" for number in range(MAX_OPEN_TASKS // 2)))
    waiting = [tuple(f"t{turn}-{number}:bob:{','.join(names)}" for number in range(8)) for turn in (2, 3)]
    half = story.speaks("ada", AsyncTaskAssignment(tasks=specs(waiting[0])))
    for story, tasks in ((full, ("t3-a:bob",)), (half, waiting[1])):
        rejection = story.refusal(said("ada", AsyncTaskAssignment(tasks=specs(tasks)), story.state.turn, story.now))
        assert rejection.code is RejectionCode.TOO_MANY_TASKS


def test_questions_that_wait_leave_space_for_messages() -> None:
    """Each entry carries all of them: one that does not fit is rejected, and the group goes on."""
    long: dict[str, Any] = {"text": "\U0001f600" * 2_000, "options": (), "default": "\U0001f600" * 2_000}
    names = [f"t1-{number}" for number in range(1, 31)]
    story = launched("ada", "bob").assigns("ada", *[f"{name}:bob" for name in names])
    for name in names:
        story = story.progresses(name)
    with pytest.raises(IllegalEventError) as rejection:
        for number, name in enumerate(names):
            asked, story = number, story.task_asks(name, **long)
    assert (rejection.value.code, asked >= 2) == (RejectionCode.TOO_LITTLE_LEFT, True)
    assert len(encode(Entry(event=story.log[-1], state=story.state, audience=story.state.hearing))) < 150_000
    question = said("ada", AskUser(**{**WELL, **long}), story.state.turn)
    assert story.refusal(question).code is RejectionCode.TOO_LITTLE_LEFT
    assert story.says("ada", to="bob").holder == "bob"


def test_state_keeps_the_beginning_of_why_a_task_was_rejected() -> None:
    """The message has all of it."""
    story = launched("ada", "bob", "eve").assigns("ada", "t1-1:bob", "t1-2:eve").progresses("t1-2").finishes("t1-1")
    long = (RejectedTask(task_id=TaskId("t1-1"), why="x" * 2_000),)
    task = story.speaks("ada", Pause(triggers=(TaskId("t1-2"),), rejects=long)).state.task(TaskId("t1-1"))
    assert isinstance(task, ClosedTask)
    assert len(task.why) == MAX_WHY_CHARS


def test_members_that_come_and_go_do_not_end_a_group() -> None:
    """A lease that is lost is no silence, however often."""
    story = launched("ada", "bob")
    for _ in range(20):
        story = story.loses("ada").regains("ada").loses("bob").regains("bob")
    assert (story.phase, story.state.silences) == ("discussing", 0)
