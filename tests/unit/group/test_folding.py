"""Closed tasks leave the state once nothing names them, so that an entry is as large after thousands of tasks as after some."""

from __future__ import annotations

from functools import cache

from ioa.group.events import Entry, encode_entry
from ioa.group.folding import KEPT
from ioa.group.rejection import RejectionCode
from ioa.group.state import ClosedTask, FoldedTasks, GroupState
from ioa.protocol.codec import decode
from ioa.protocol.ids import AgentId, TaskId, turn_of_task_id
from ioa.protocol.messages import (
    InformTaskProgress,
    InformTaskResult,
    Pause,
    SyncTaskAssignment,
    TaskOutcome,
    TaskSpec,
)
from tests.unit.group.scenario import Scenario, launched, said

BOB, EVE = AgentId("bob"), AgentId("eve")


def _done(story: Scenario, tasks: int, assignee: str = "bob") -> Scenario:
    """Give out tasks one after the other, each of which is done at once."""
    for _ in range(tasks):
        name = f"t{story.state.turn}-x"
        story = story.assigns_and_waits("ada", f"{name}:{assignee}").finishes(name)
    return story


@cache
def _busy() -> Scenario:
    return _done(_done(launched("ada", "bob", "eve", max_turns=5_000), 10, "eve"), KEPT)


def _using(story: Scenario, task_id: str) -> SyncTaskAssignment:
    spec = TaskSpec(task_id=TaskId(f"t{story.state.turn}-y"), assignee=BOB, task_desc="go on", uses=(TaskId(task_id),))
    return SyncTaskAssignment(tasks=(spec,))


def test_of_closed_tasks_the_last_stay_and_the_others_are_counted() -> None:
    """What became of each is known for a while; then only how many there were."""
    state = _busy().state
    assert (len(state.tasks), state.folded, state.tasks_given) == (KEPT, (FoldedTasks(assignee=EVE, done=10),), KEPT + 10)


def test_an_entry_does_not_grow_with_the_tasks() -> None:
    """After 1,000 tasks an entry has about the size that it had after 100."""
    sizes = {}
    story = launched("ada", "bob", max_turns=5_000)
    for task in range(1, 1_001):
        story = Scenario(_done(story, 1).state, ())
        if task in (100, 1_000):
            event = said("ada", Pause(triggers=(TaskId("t1-x"),)), story.state.turn)
            sizes[task] = len(encode_entry(Entry(event=event, state=story.state, audience=())).data)
    assert sizes[1_000] < 1.05 * sizes[100] < 5_000


def test_a_task_that_closes_late_is_seen_to_close() -> None:
    """However many newer ones are closed, it leaves no earlier than in the next step."""
    story = launched("ada", "bob", "eve", max_turns=200).assigns("ada", "t1-late:eve").progresses("t1-late")
    closed = _done(story, KEPT + 5).finishes("t1-late")
    task = closed.state.task(TaskId("t1-late"))
    assert isinstance(task, ClosedTask) and task.outcome is TaskOutcome.DONE
    remembered = _done(closed, 20)
    assert remembered.state.is_folded(TaskId("t1-late"))


def test_a_task_that_the_group_waits_for_stays() -> None:
    """So does one whose result may be repeated: what is remembered of a text names its task."""
    story = (
        launched("ada", "bob", "eve", max_turns=200).assigns("ada", "t1-a:eve", "t1-b:eve").progresses("t1-a").progresses("t1-b")
    )
    paused = _done(story, KEPT + 5).pauses("ada", "t1-a", "t1-b").finishes("t1-a").progresses("t1-b").progresses("t1-b")
    assert isinstance(paused.state.task(TaskId("t1-a")), ClosedTask)


def test_a_task_whose_team_has_a_loan_stays_until_that_is_repaid() -> None:
    """Its team has to be cancelled yet, and to say what it used up."""
    story = launched("ada", "bob", "eve", max_turns=500).assigns("ada", "t1-n:eve").nests("t1-n").finishes("t1-n")
    lent = _done(story, KEPT + 15)
    assert isinstance(lent.state.task(TaskId("t1-n")), ClosedTask)
    repaid = lent.nested_ends("t1-n").says("ada", to="bob")
    assert repaid.state.is_folded(TaskId("t1-n"))


def test_a_task_that_has_left_may_still_be_used_and_named() -> None:
    """Its id tells that it is of an earlier turn. Its assignee has the result from the log."""
    story = _busy()
    used = story.speaks("ada", _using(story, "t3-x"))
    paused = story.assigns("ada", f"t{story.state.turn}-y:bob").progresses(f"t{story.state.turn}-y").pauses("ada", "t3-x")
    assert (len(used.state.open_tasks), paused.holder) == (1, "ada")


def test_what_never_was_is_unknown() -> None:
    """A task of this turn or a later one, or without a turn, cannot have left."""
    story = _busy()
    codes = [
        story.refusal(said("ada", _using(story, task_id), story.state.turn)).code
        for task_id in ("t9999-x", "sum", f"t{story.state.turn}-z")
    ]
    assert codes == [RejectionCode.UNKNOWN_TASK] * 3


def test_a_report_on_a_task_that_has_left_comes_too_late() -> None:
    """It is closed, whatever the report says."""
    story = _busy()
    reports = (InformTaskResult(task_id=TaskId("t2-x"), task_conclusion="…"), InformTaskProgress(task_id=TaskId("t2-x"), number=9))
    assert [story.refusal(said("eve", report, 2)).code for report in reports] == [RejectionCode.TASK_CLOSED] * 2


def test_what_is_encoded_decodes_to_the_same() -> None:
    """Each task is encoded once, without what it has by default, and read back as it was."""
    story = (
        _busy().assigns("ada", *(f"t{_busy().state.turn}-{number}:bob" for number in range(5))).nests(f"t{_busy().state.turn}-1")
    )
    state: GroupState = story.timer().state
    entry = Entry(event=story.log[-1], state=state, audience=())
    twice = [encode_entry(entry).data for _ in range(2)]
    assert (twice[0] == twice[1], decode(Entry, twice[0])) == (True, entry)


def test_the_turn_of_a_task_is_told_by_its_id_alone_once_others_have_left() -> None:
    """So the state after four thousand tasks is as large as after forty."""
    story = _done(launched("ada", "bob", max_turns=5_000), KEPT + 8)
    tasks = [task for task in story.state.tasks if isinstance(task, ClosedTask)]
    assert not any(task.turn for task in tasks[:-1])
    assert [task.given_in for task in tasks] == [turn_of_task_id(task.task_id) for task in tasks]
