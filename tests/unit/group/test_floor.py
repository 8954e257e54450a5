"""Who has the floor: handing it on, waiting for tasks, silence, and the number of turns."""

from __future__ import annotations

from datetime import timedelta

import pytest

from ioa.group.events import TimerFired
from ioa.group.rejection import RejectionCode
from ioa.group.state import Ended, Paused
from ioa.protocol.goals import Reason
from ioa.protocol.ids import AgentId
from ioa.protocol.messages import Discussion, Phase, TaskOutcome
from tests.unit.group.scenario import START, launched, said


def test_the_owner_has_the_first_floor() -> None:
    """A group opens with its owner's turn 1."""
    story = launched("ada", "bob")
    assert (story.holder, story.state.turn, story.state.turns_taken) == ("ada", 1, 0)


def test_a_discussion_hands_the_floor_to_the_named_speaker() -> None:
    """The next speaker has a turn of its own."""
    story = launched("ada", "bob", "eve").says("ada", to="eve")
    assert (story.holder, story.state.turn, story.state.turns_taken) == ("eve", 2, 1)


def test_nobody_has_the_floor_while_synchronous_tasks_run() -> None:
    """The floor is suspended until all of them are closed, and then returns to the assigner."""
    waiting = launched("ada", "bob", "eve").assigns_and_waits("ada", "t1-1:bob", "t1-2:eve").finishes("t1-1")
    assert (waiting.phase, waiting.holder, waiting.finishes("t1-2").holder) == (Phase.ASSIGNED, None, "ada")


def test_asynchronous_tasks_return_the_floor_when_all_have_answered() -> None:
    """Progress, a result or a nested team is an answer."""
    handing = launched("ada", "bob", "eve").assigns("ada", "t1-1:bob", "t1-2:eve", "t1-3:eve").progresses("t1-1").nests("t1-2")
    assert (handing.holder, handing.finishes("t1-3").holder) == (None, "ada")


def test_an_assignee_that_does_not_answer_cannot_keep_the_floor_away() -> None:
    """After the floor's time-out the assigner goes on; the task lives on with its lease."""
    story = launched("ada", "bob").assigns("ada", "t1-1:bob").after(60)
    story = story.happens(TimerFired(at=story.now))
    assert (story.holder, story.outcome("t1-1")) == ("ada", None)


def test_a_pause_lasts_until_the_last_trigger_is_closed() -> None:
    """Tasks that are no trigger do not matter."""
    story = launched("ada", "bob").assigns("ada", "t1-1:bob", "t1-2:bob", "t1-3:bob").progresses("t1-1").progresses("t1-2")
    paused = story.progresses("t1-3").pauses("ada", "t1-1", "t1-2").finishes("t1-3").finishes("t1-1")
    assert (paused.phase, paused.finishes("t1-2").holder) == (Phase.PAUSED, "ada")


def test_a_pause_on_closed_tasks_returns_the_floor_at_once() -> None:
    """The result may have crossed the pause on its way; the pause costs a turn and nothing else."""
    story = launched("ada", "bob").assigns_and_waits("ada", "t1-1:bob").finishes("t1-1").pauses("ada", "t1-1", "t1-1")
    assert (story.phase, story.holder, story.state.turns_taken) == (Phase.DISCUSSING, "ada", 2)


def test_a_trigger_named_twice_is_waited_for_once() -> None:
    """Duplicates in a pause do no harm."""
    story = launched("ada", "bob").assigns("ada", "t1-1:bob").progresses("t1-1").pauses("ada", "t1-1", "t1-1")
    assert story.finishes("t1-1").holder == "ada"


def test_a_pause_ends_by_itself() -> None:
    """When the pause's time is over the pauser may look again, although the task still runs."""
    story = launched("ada", "bob").assigns("ada", "t1-1:bob").progresses("t1-1").pauses("ada", "t1-1")
    while isinstance(story.state.stage, Paused) and story.now < story.state.stage.until - timedelta(seconds=20):
        story = story.after(20).progresses("t1-1")
    story = story.timer()
    assert (story.holder, story.outcome("t1-1"), story.now) == ("ada", None, START + timedelta(seconds=600))


def test_a_silent_holder_is_passed_over() -> None:
    """The floor goes round in the order of joining, and no turn is used up."""
    story = launched("ada", "bob", "eve")
    holders = [story.timers(times).holder for times in range(5)]
    assert (holders, story.timers(4).state.turns_taken) == (["ada", "bob", "eve", "ada", "bob"], 0)


def test_a_word_ends_the_silence() -> None:
    """Silences count in a row only."""
    story = launched("ada", "bob").timers(3).says("bob", to="ada")
    assert story.state.silences == 0


def test_a_group_in_which_nobody_speaks_fails() -> None:
    """After two rounds of silence the group is given up, long before its deadline."""
    story = launched("ada", "bob").timers(4)
    assert (story.phase, story.state.stage) == (
        Phase.FAILED,
        Ended(
            reason=Reason.MEMBER_LOST,
            content="No member of the group speaks any more.",
            ended_at=START + timedelta(seconds=240),
        ),
    )


def test_a_silent_concluding_speaker_is_passed_over() -> None:
    """Another member may state the conclusion; it has two rounds as well, however silent the discussion was."""
    story = launched("ada", "bob").timers(3).announces("bob").timers(3)
    assert (story.phase, story.holder, story.concludes("ada").phase) == (Phase.CONCLUDING, "ada", Phase.CONCLUDED)


def test_a_late_word_of_a_passed_over_holder_is_stale() -> None:
    """The grant it speaks for has been taken back."""
    late = said("ada", Discussion(content="…", next_speaker=AgentId("bob")), 1)
    assert launched("ada", "bob").timers(2).refusal(late).code is RejectionCode.STALE_TURN


@pytest.mark.parametrize("turns", [1, 2, 3, 7])
def test_n_turns_mean_n_turns(turns: int) -> None:
    """Exactly `max_turns` messages are taken; the last one forces the owner to conclude."""
    story, pair = launched("ada", "bob", max_turns=turns), ("ada", "bob")
    for number in range(turns):
        assert story.phase is Phase.DISCUSSING
        story = story.says(pair[number % 2], to=pair[(number + 1) % 2])
    assert (story.phase, story.holder, story.state.turns_taken) == (Phase.CONCLUDING, "ada", turns)


def test_a_conclusion_that_turns_forced_is_a_failure_with_an_answer() -> None:
    """Unless the owner says that the goal was reached: its words are kept, the reason is `max_turns`."""
    story = launched("ada", "bob", max_turns=1).says("ada", to="bob").concludes("ada", Reason.FAILED)
    assert (story.phase, story.state.stage) == (
        Phase.FAILED,
        Ended(reason=Reason.MAX_TURNS, content="Ten.", ended_at=START),
    )


def test_announcing_a_conclusion_costs_no_turn() -> None:
    """Who is done within the last turn has succeeded."""
    story = launched("ada", "bob", max_turns=2).says("ada", to="bob").announces("bob").concludes("bob")
    assert (story.phase, story.state.turns_taken) == (Phase.CONCLUDED, 1)


def test_tasks_of_the_last_turn_are_waited_for_if_they_are_synchronous() -> None:
    """Their results are there when the conclusion is forced."""
    story = launched("ada", "bob", max_turns=1).assigns_and_waits("ada", "t1-1:bob").finishes("t1-1")
    assert (story.phase, story.outcome("t1-1")) == (Phase.CONCLUDING, TaskOutcome.DONE)


def test_the_last_turn_cancels_what_still_runs() -> None:
    """Asynchronous tasks end with the discussion they run beside."""
    story = launched("ada", "bob", max_turns=1).assigns("ada", "t1-1:bob").progresses("t1-1")
    assert (story.phase, story.outcome("t1-1")) == (Phase.CONCLUDING, TaskOutcome.CANCELLED)
