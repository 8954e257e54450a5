"""Members of a free group that speak side by side: who has a seat, what is counted, and where the floor goes."""

from __future__ import annotations

import pytest

from ioa.group.machine import legal_kinds
from ioa.group.state import FieldVotes, Gathering, Votes
from ioa.protocol.goals import Reason
from ioa.protocol.ids import AgentId
from ioa.protocol.messages import Discussion, Pass, PassCause, Phase, Thinking
from ioa.protocol.policy import FieldValue, FormField
from tests.unit.group.scenario import Scenario, launched

A, B, C = AgentId("ada"), AgentId("bob"), AgentId("eve")
QUESTION = (
    FormField(name="choice", kind="option", options=("red", "blue")),
    FormField(name="size", kind="number", required=False),
    FormField(name="who", kind="member", required=False),
    FormField(name="sure", kind="yes_no", required=False),
)


def asked(*names: AgentId, question: tuple[FormField, ...] = (), max_turns: int = 10) -> Scenario:
    """Ada names some, side by side."""
    story = launched("ada", "bob", "eve", max_turns=max_turns, patient=["eve"])
    return story.speaks("ada", Discussion(content="Well?", next_speakers=names or (B, C), question=question))


def answers(story: Scenario, by: AgentId, /, **fields: FieldValue) -> Scenario:
    """One of them answers."""
    return story.speaks(by, Discussion(content=f"{by} says so.", fields=fields))


def test_each_speaks_once_in_any_order_and_the_floor_returns() -> None:
    """All under one turn number; each answer takes a turn of the group."""
    story = asked()
    assert (story.phase, story.state.floor, story.holder, story.state.turn) == (Phase.GATHERING, (B, C), None, 2)
    later = answers(story, C)
    assert (later.state.floor, later.state.turn) == ((B,), 2)
    closed = answers(later, B)
    assert (closed.holder, closed.state.turn, closed.state.turns_taken) == ("ada", 3, 3)


def test_answers_are_counted_by_field() -> None:
    """Options in their order, of numbers the bounds and the sum; words stay in the messages."""
    story = answers(asked(question=QUESTION), C, choice="blue", size=3, who="ada")
    closed = answers(story, B, choice="blue", size=-1, sure=True)
    assert closed.state.tally == Votes(
        turn=2,
        by=A,
        answered=2,
        fields=(
            FieldVotes(name="choice", counts=(("red", 0), ("blue", 2)), count=2),
            FieldVotes(name="size", count=2, lowest=-1, highest=3, total=2),
            FieldVotes(name="who", counts=(("ada", 1),), count=1),
            FieldVotes(name="sure", counts=(("yes", 1), ("no", 0)), count=1),
        ),
    )


def test_a_tally_stands_until_the_next_question() -> None:
    """Whoever asks next replaces it."""
    first = answers(answers(asked(question=QUESTION), B, choice="red"), C, choice="red")
    on = first.says("ada", to="bob")
    assert on.state.tally == first.state.tally
    again = on.speaks("bob", Discussion(content="And now?", next_speakers=(A,)))
    assert answers(again, A).state.tally == Votes(turn=5, by=B, answered=1)


def test_who_is_silent_passes_or_is_lost_is_told() -> None:
    """And nobody waits for them longer than their time."""
    silent = answers(asked(question=QUESTION), C, choice="red").timer()
    assert silent.state.tally is not None
    assert (silent.holder, silent.state.tally.answered, silent.state.tally.silent) == ("ada", 1, (B,))
    gone = asked().speaks("bob", Pass(cause=PassCause.NOTHING_TO_ADD)).loses("eve")
    assert (gone.holder, gone.state.tally) == ("ada", Votes(turn=2, by=A, silent=(B, C)))


def test_if_who_has_asked_is_lost_another_one_gets_the_floor() -> None:
    """The answers are in the log for it."""
    assert answers(answers(asked().loses("ada"), B), C).holder == "bob"


def test_open_seats_count_as_used_turns() -> None:
    """So that the last turn is everybody's own."""
    story = asked(max_turns=3)
    assert story.state.turns_left == 0
    closed = answers(answers(story, B), C)
    assert (closed.phase, closed.state.turns_taken, closed.state.forced) == (Phase.CONCLUDING, 3, Reason.MAX_TURNS)


def test_a_silent_seat_gives_its_turn_back() -> None:
    """Who said nothing has used nothing up."""
    assert answers(asked(max_turns=3), B).timer().holder == "ada"


def test_silence_of_all_ends_the_group() -> None:
    """Seats count like floors that ran out."""
    story = launched("ada", "bob").speaks("ada", Discussion(content="Well?", next_speakers=(B,)))
    assert story.timers(4).phase is Phase.FAILED


def test_a_seat_may_be_kept_longer_with_patience() -> None:
    """The others have their own time."""
    later = asked().after(40).thinks("eve")
    assert isinstance(later.state.stage, Gathering)
    assert [(seat.until - later.now).total_seconds() for seat in later.state.stage.seats] == [20, 60]


@pytest.mark.parametrize(("who", "kinds"), [(A, ()), (B, (Discussion, Pass))])
def test_a_seat_is_told_what_it_may_say(who: AgentId, kinds: tuple[type, ...]) -> None:
    """And who has none, that it is nothing."""
    story = asked()
    assert legal_kinds(story.state, who, story.now) == kinds
    assert Thinking in legal_kinds(story.after(40).state, C, story.after(40).now)


def test_tasks_run_on_beside_a_gathering() -> None:
    """Their reports close them, and no seat."""
    story = launched("ada", "bob", "eve").assigns("ada", "t1-1:bob").progresses("t1-1")
    both = story.speaks("ada", Discussion(content="Well?", next_speakers=(B, C)))
    assert (both.finishes("t1-1").phase, both.finishes("t1-1").state.open_tasks) == (Phase.GATHERING, ())
