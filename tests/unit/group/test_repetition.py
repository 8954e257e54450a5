"""Repetitions: what is refused and what is not, that the first refusal costs nothing, and that the second one leads out."""

from __future__ import annotations

import pytest

from ioa.group.events import TaskHeard, TimerFired
from ioa.group.rejection import RejectionCode
from ioa.group.state import Discussing, Paused
from ioa.protocol.goals import Reason
from ioa.protocol.ids import AgentId, TaskId
from ioa.protocol.messages import (
    AsyncTaskAssignment,
    Discussion,
    InformTaskResult,
    Phase,
    SyncTaskAssignment,
    TaskOutcome,
    TaskSpec,
)
from tests.unit.group.scenario import Scenario, launched, said

ADA, BOB = AgentId("ada"), AgentId("bob")
PROPOSAL = "Bob computes the totals per region, and Eve draws a chart of them."


def _to(other: AgentId, content: str = PROPOSAL) -> Discussion:
    return Discussion(content=content, next_speaker=other)


def _proposed() -> Scenario:
    return launched("ada", "bob", "eve").speaks("ada", _to(BOB))


def _back_to_ada() -> Scenario:
    """Nobody answers, and the floor comes round."""
    return _proposed().timer().timer()


def _accepts(story: Scenario, content: str) -> bool:
    return story.speaks("ada", _to(BOB, content)).state.turns_taken == story.state.turns_taken + 1


def test_who_says_the_same_into_silence_is_refused() -> None:
    """The refusal says since when, and what would help; the state stays as it was."""
    story = _back_to_ada()
    refused = story.refusal(said("ada", _to(BOB, f"  {PROPOSAL.upper()}!"), story.state.turn))
    assert (refused.code, refused.repeats_turn) == (RejectionCode.REPETITION, 1)
    assert refused.message == (
        "You said the same in turn 1, and nothing has happened since. Say something new, give out a task, or conclude."
    )


def test_a_refusal_proposes_a_pause_on_what_is_open() -> None:
    """With open tasks the way out is to wait for them."""
    story = launched("ada", "bob").assigns("ada", "t1-1:bob").progresses("t1-1").speaks("ada", _to(BOB)).after(60)
    heard = TaskHeard(task_id=TaskId("t1-1"), at=story.now)
    story = story.happens(TimerFired(at=story.now, heard=(heard,)))
    assert "pause on t1-1" in story.refusal(said("ada", _to(BOB), story.state.turn)).message


@pytest.mark.parametrize(
    "content",
    [
        "Bob computes the totals per month, and Eve draws a chart of them.",
        "Bob computes the totals per region, and Eve draws a chart of them. Agreed?",
        "As I said: Bob computes the totals per region, and Eve draws a chart of them.",
    ],
    ids=["another-word", "with-a-question", "once-more"],
)
def test_what_is_only_alike_is_no_repetition(content: str) -> None:
    """One word more or another one, and it may well be worth saying."""
    assert _accepts(_back_to_ada(), content)


def test_anything_that_happens_makes_it_worth_saying_again() -> None:
    """Somebody else has spoken, a task was closed, or a member was lost: the same words may mean something else now."""
    stories = (
        _proposed().says("bob", to="ada"),
        _back_to_ada().loses("eve"),
        launched("ada", "bob").assigns("ada", "t1-1:bob").progresses("t1-1").speaks("ada", _to(BOB)).finishes("t1-1").timer(),
    )
    assert [_accepts(story, PROPOSAL) for story in stories] == [True] * 3


def test_who_agrees_in_the_words_of_another_is_heard() -> None:
    """Votes and consent are alike by nature."""
    story = launched("ada", "bob", "eve").speaks("ada", _to(BOB, "Yes.")).speaks("bob", _to(AgentId("eve"), "Yes."))
    assert story.speaks("eve", _to(ADA, "Yes.")).holder == "ada"


def test_where_nothing_is_compared_nothing_is_refused() -> None:
    """The routers sketch no message of a group without the rule."""
    story = _back_to_ada()
    again = said("ada", _to(BOB), story.state.turn).model_copy(update={"sketches": ()})
    spoken = story.happens(again)
    assert (spoken.holder, spoken.state.monologue) == ("bob", None)


def test_the_first_repetition_of_a_turn_costs_nothing() -> None:
    """It is noted; the speaker keeps the floor with its deadline, and no turn is used up."""
    story = _proposed()
    noted = story.after(5).repeats_itself("bob", "m1")
    expected = story.state.stage
    assert isinstance(expected, Discussing)
    stage = expected.model_copy(update={"repeated": "m1"})
    assert noted.state == story.state.model_copy(update={"stage": stage})


def test_a_message_counts_once_however_often_it_is_sent() -> None:
    """The same message, refused by another router or sent again after a lost answer, is no second offence."""
    story = _proposed().repeats_itself("bob", "m1")
    assert story.refusal(story.log[-1]).code is RejectionCode.NO_CHANGE


def test_who_repeats_again_waits_for_the_open_tasks() -> None:
    """The second repetition of a turn uses it up for a pause on all open tasks; then the speaker has the floor again."""
    story = _proposed().assigns("bob", "t2-1:eve", "t2-2:ada").progresses("t2-1").progresses("t2-2")
    paused = story.repeats_itself("bob", "m1").repeats_itself("bob", "m2")
    assert isinstance(paused.state.stage, Paused)
    assert (paused.state.stage.triggers, paused.state.turns_taken) == (("t2-1", "t2-2"), story.state.turns_taken + 1)
    assert paused.finishes("t2-1").finishes("t2-2").holder == "bob"


def test_who_repeats_again_with_nothing_open_lets_the_owner_conclude() -> None:
    """The owner concludes, and may say that the goal was reached: nothing was cut short."""
    story = _proposed().repeats_itself("bob", "m1").repeats_itself("bob", "m2")
    assert (story.phase, story.holder) == (Phase.CONCLUDING, "ada")
    ended = story.concludes("ada")
    assert (ended.phase, ended.effects[0].result.reason) == (Phase.CONCLUDED, Reason.CONCLUDED)  # type: ignore[union-attr]


def test_a_repetition_of_another_turn_does_not_count() -> None:
    """Each turn starts with a clean slate, and what was refused in an earlier one is refused as stale."""
    story = _proposed().repeats_itself("bob", "m1").says("bob", to="ada")
    late = story.log[-2]
    assert story.refusal(late).code is RejectionCode.STALE_TURN
    assert story.repeats_itself("ada", "m2").phase is Phase.DISCUSSING


def test_only_the_holder_can_have_repeated() -> None:
    """A report about somebody else is refused."""
    story = _proposed()
    forged = story.repeats_itself("bob", "m1").log[-1].model_copy(update={"by": ADA})
    assert story.refusal(forged).code is RejectionCode.NOT_YOUR_FLOOR


def test_who_repeats_for_ever_is_passed_over() -> None:
    """A client that reports nothing but one and the same message cannot keep the floor: its time runs out."""
    story = _proposed().repeats_itself("bob", "m1")
    assert story.timer().holder == "eve"


def _task(task_id: str, desc: str, *, to: str = "bob", uses: tuple[str, ...] = ()) -> TaskSpec:
    return TaskSpec(task_id=TaskId(task_id), assignee=AgentId(to), task_desc=desc, uses=tuple(TaskId(use) for use in uses))


MEAN = "Compute the mean of the prices in sales.csv."


def _assigned() -> Scenario:
    tasks = (_task("t1-1", MEAN), _task("t1-2", "Draw a chart of the prices.", to="eve"))
    return launched("ada", "bob", "eve").speaks("ada", AsyncTaskAssignment(tasks=tasks)).progresses("t1-1").progresses("t1-2")


def test_an_assignment_of_tasks_under_way_is_refused() -> None:
    """The refusal names them; it makes no difference whether the discussion would wait for the new ones."""
    story = _assigned()
    refused = story.refusal(said("ada", SyncTaskAssignment(tasks=(_task("t2-9", MEAN.lower()),)), 2))
    assert (refused.code, refused.repeats_turn) == (RejectionCode.REPETITION, 1)
    assert refused.message == (
        "All of this is under way: t2-9 is t1-1. Pause on t1-1, give out something else, or say something new."
    )


@pytest.mark.parametrize(
    "tasks",
    [
        (_task("t2-9", "Compute the median of the prices in sales.csv."),),
        (_task("t2-9", MEAN, to="eve"),),
        (_task("t2-9", MEAN, uses=("t1-2",)),),
        (_task("t2-9", MEAN), _task("t2-10", "Write a report.")),
    ],
    ids=["another-word", "another-member", "on-other-results", "with-a-new-one"],
)
def test_a_task_that_differs_is_given_out(tasks: tuple[TaskSpec, ...]) -> None:
    """Another value, assignee or input makes it another task, and one new task makes an assignment new."""
    story = _assigned().finishes("t1-2").speaks("ada", AsyncTaskAssignment(tasks=tasks))
    assert len(story.state.tasks) == 2 + len(tasks)


def test_a_task_that_is_closed_may_be_given_out_again() -> None:
    """What failed may be tried again, and what was done may have to be done anew."""
    lost = InformTaskResult(task_id=TaskId("t1-1"), outcome=TaskOutcome.FAILED, task_conclusion="The file is locked.")
    for story in (_assigned().speaks("bob", lost, turn=1), _assigned().finishes("t1-1")):
        again = story.speaks("ada", AsyncTaskAssignment(tasks=(_task("t2-9", MEAN),)))
        assert again.open("t2-9").assignee == "bob"
