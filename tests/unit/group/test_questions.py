"""Questions out of a group, of tasks and of nested teams: who is waited for, who answers, and what stands if nobody does."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from ioa.group.effects import AnswerSubgroup, AskParent
from ioa.group.events import Entry, QuestionAnswered, SubgroupAsked, TaskDecision, TimerFired
from ioa.group.machine import legal_kinds, step
from ioa.group.policy.audience import seen_by
from ioa.group.policy.offer import offer
from ioa.group.questions import MAX_QUESTIONS
from ioa.group.rejection import IllegalEventError, RejectionCode
from ioa.group.state import Awaiting, Elsewhere, ParentTask
from ioa.protocol.codec import decode, encode
from ioa.protocol.ids import AgentId, CommId, TaskId
from ioa.protocol.messages import AskUser, Decision, Phase, TaskQuestion
from ioa.protocol.policy import Exit, Node, Policy, Role
from ioa.protocol.questions import Question
from ioa.protocol.team import TeamError
from tests.unit.group.scenario import START, WELL, Scenario, launched, launched_under, said
from tests.unit.group.test_policy import policy_of

ADA, BOB = AgentId("ada"), AgentId("bob")
TASK = TaskId("t1-1")
PARENT = ParentTask(comm_id=CommId("root"), task_id=TASK)


def policy_of_asking() -> Policy:
    """Two members that speak in turn and may ask their user."""
    node = Node(name="talk", roles=("a", "b"), max=6, asks=True, exits=(Exit(to="end"),))
    return Policy(roles=(Role(name="a"), Role(name="b")), nodes=(node,))


def led(policy: Policy | None = None) -> Scenario:
    """Ada and Bob under a policy that lets them ask."""
    return launched_under(policy or policy_of_asking(), {"a": ["ada"], "b": ["bob"], "c": ["eve"]}, "ada", "bob", "eve")


def tasked() -> Scenario:
    """Bob is at a task of Ada's."""
    return launched("ada", "bob", "eve").assigns("ada", "t1-1:bob").progresses("t1-1")


@pytest.mark.parametrize("story", [launched("ada", "bob"), led()], ids=["free", "led"])
def test_the_discussion_waits_for_the_answer_and_the_asker_goes_on(story: Scenario) -> None:
    """Nobody has the floor until the user has answered; then who has asked has it, and one turn is used up."""
    asked = story.asks("ada")
    assert (asked.phase, asked.state.floor, asked.state.turns_taken) == (Phase.PAUSED, (), 1)
    after = asked.answered("yes")
    assert (after.phase, after.holder, after.state.turn) == (Phase.DISCUSSING, "ada", asked.state.turn + 1)
    assert after.state.course is None or after.state.course.turns == 0


@pytest.mark.parametrize("story", [launched("ada", "bob"), led()], ids=["free", "led"])
def test_the_default_stands_when_nobody_has_answered_and_an_answer_is_then_too_late(story: Scenario) -> None:
    """A question never outlives its time: what comes at its end counts no more, whether the timer has fired or not."""
    asked = story.asks("ada")
    late = asked.after(300).refusal(asked.after(300).answer("yes"))
    over = asked.timer()
    assert (late.code, over.holder, over.now) == (RejectionCode.TOO_LATE, "ada", WELL["until"])
    again = over.refusal(asked.answer("yes"))
    assert again.code is RejectionCode.TOO_LATE


@pytest.mark.parametrize("story", [launched("ada", "bob"), led()], ids=["free", "led"])
def test_one_answer_counts(story: Scenario) -> None:
    """The first answer moves the group on; the second one, and one to another turn, are told that they are too late."""
    asked = story.asks("ada")
    first = asked.answered("yes")
    assert first.refusal(asked.answer("no")).code is RejectionCode.TOO_LATE
    elsewhere = asked.answer("no").model_copy(update={"turn": 7})
    assert asked.refusal(elsewhere).code is RejectionCode.TOO_LATE
    assert asked.refusal(asked.answer("maybe")).code is RejectionCode.BAD_DECISION


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        ({"default": "maybe"}, "none of its options"),
        ({"options": ("no", "no")}, "twice"),
        ({"until": START}, "lie ahead"),
        ({"until": START + timedelta(days=2)}, "lie ahead"),
    ],
)
def test_what_could_not_end_well_is_not_asked(wrong: dict[str, Any], why: str) -> None:
    """A question has a default that may be answered, and ends before its group."""
    refused = launched("ada", "bob").refusal(said("ada", AskUser(**{**WELL, **wrong}), 1))
    assert (refused.code, why in refused.message) == (RejectionCode.BAD_FORM, True)


def test_tasks_go_on_while_the_user_is_asked_and_no_pause_timeout_ends_it() -> None:
    """A report comes in meanwhile, and only the answer or the question's own time leads on."""
    asked = tasked().asks("ada", until=START + timedelta(hours=2))
    assert asked.finishes("t1-1").phase is Phase.PAUSED
    assert asked.state.next_deadline() is not None and isinstance(asked.after(3_600).state.stage, Awaiting)


def test_who_has_asked_and_is_lost_is_passed_over() -> None:
    """The answer gives the floor to a living member in a free group, and to who is next under a policy."""
    free = launched("ada", "bob").asks("ada").loses("ada").answered("yes")
    assert (free.holder, led().asks("ada").loses("ada").answered("yes").holder) == ("bob", "bob")


def test_a_policy_says_where_the_user_may_be_asked() -> None:
    """Where the node does not ask nobody is offered it, and who does all the same is told so."""
    story = launched_under(
        policy_of({"name": "talk", "roles": ["a", "b"], "max": 4, "then": "end"}), {"a": ["ada"], "b": ["bob"]}, "ada", "bob"
    )
    assert story.policy is not None
    assert AskUser not in legal_kinds(story.state, ADA, START, story.policy)
    assert story.refusal(said("ada", AskUser(**WELL), 1)).code is RejectionCode.OFF_COURSE
    there = led()
    assert there.policy is not None
    offered = offer(there.policy, there.state, ADA)
    assert offered is not None and offered.asks and AskUser in legal_kinds(there.state, ADA, START, there.policy)


def test_the_checker_refuses_questions_where_several_speak_and_where_words_are_reviewed() -> None:
    """Nobody can be waited for in a gathering, and no words leave the group that nobody has passed."""
    asks = {"name": "talk", "roles": ["a", "b"], "asks": True, "max": 4, "then": "end"}
    for more in ({"turns": "together"}, {"review": "b"}):
        with pytest.raises(TeamError, match="node talk: `asks`"):
            policy_of({**asks, **more})


def test_who_does_not_hear_the_asker_learns_nothing_of_question_and_answer() -> None:
    """Under a policy with hidden words the question stays with who hears the asker, and so does its answer."""
    node = {"name": "talk", "roles": ["a", "b"], "heard_by": ["a", "b"], "asks": True, "max": 4, "then": "end"}
    story = launched_under(policy_of(node, roles={"c": {}}), {"a": ["ada"], "b": ["bob"], "c": ["eve"]}, "ada", "bob", "eve")
    assert story.policy is not None
    asked = story.asks("ada")
    assert isinstance(seen_by(story.policy, asked.state, AgentId("eve")).stage, Elsewhere)
    assert isinstance(seen_by(story.policy, asked.state, BOB).stage, Awaiting)
    told = step(asked.state, asked.answer("yes"), story.policy)
    assert (told.audience, told.noticed) == ((ADA, BOB), ())


def test_a_task_is_answered_without_the_floor_by_who_gave_it_out() -> None:
    """The discussion goes on beside it; the answer is one of the options, once, and from nobody else."""
    asked = tasked().task_asks("t1-1")
    answer = Decision(task_id=TASK, choice="yes")
    assert (asked.phase, asked.holder, asked.open("t1-1").question is not None) == (Phase.DISCUSSING, "ada", True)
    there = asked.says("ada", to="eve")
    refused = [there.refusal(said(who, answer, there.state.turn)).code for who in ("eve", "bob")]
    assert refused == [RejectionCode.NOT_YOUR_TASK] * 2
    assert there.refusal(said("ada", Decision(task_id=TASK, choice="maybe"), 1)).code is RejectionCode.BAD_DECISION
    after = there.speaks("ada", answer)
    assert (after.open("t1-1").question, after.holder) == (None, "eve")
    assert after.refusal(said("ada", answer, 1)).code is RejectionCode.TOO_LATE


def test_an_answer_to_an_earlier_question_never_answers_a_later_one() -> None:
    """What is approved is the question that was read, not the one that waits by now."""
    second = tasked().task_asks("t1-1").answered("no", "t1-1").task_asks("t1-1")
    stale = QuestionAnswered(at=START, task_id=TASK, number=1, answer="yes", by="user")
    assert second.refusal(stale).code is RejectionCode.TOO_LATE
    assert second.refusal(said("ada", Decision(task_id=TASK, choice="yes", number=1), 1)).code is RejectionCode.TOO_LATE


def test_a_copy_of_a_question_is_not_asked_twice() -> None:
    """A message that is sent again after a crash is refused, whether its question waits or was answered."""
    asked = tasked().task_asks("t1-1")
    copy = said("bob", TaskQuestion(**WELL, task_id=TASK, number=1), 1)
    assert asked.refusal(copy).code is RejectionCode.STALE_PROGRESS
    assert asked.answered("yes", "t1-1").refusal(copy).code is RejectionCode.STALE_PROGRESS


def test_who_works_on_its_own_task_does_not_answer_it_and_the_user_does() -> None:
    """Nobody approves what it asks itself."""
    own = launched("ada", "bob").assigns("ada", "t1-1:ada").task_asks("t1-1")
    assert own.refusal(said("ada", Decision(task_id=TASK, choice="yes"), 1)).code is RejectionCode.NOT_YOUR_TASK
    assert own.answered("yes", "t1-1").open("t1-1").question is None


def test_a_question_of_a_task_ends_with_its_time_and_with_the_task() -> None:
    """Its default stands, as the timer that fires then says; a closed task asks nothing."""
    asked = tasked().task_asks("t1-1", until=START + timedelta(seconds=10))
    assert asked.state.next_deadline() == START + timedelta(seconds=10)
    assert asked.timer().open("t1-1").question is None
    done = asked.finishes("t1-1")
    assert (
        done.refusal(QuestionAnswered(at=START, task_id=TASK, number=1, answer="yes", by="user")).code is RejectionCode.TASK_CLOSED
    )


def test_a_nested_team_asks_its_parent_and_is_told_once() -> None:
    """What the team owes follows from its state: the question while it waits, in the parent the answer until something follows."""
    child = launched("bob", "eve", parent=PARENT, depth=1).asks("bob")
    (ask,) = child.effects
    assert isinstance(ask, AskParent) and (ask.parent, ask.number, ask.question.text) == (PARENT, child.state.turn, "Well?")
    parent = tasked().nests("t1-1").team_asks("t1-1", ask.number).speaks("ada", Decision(task_id=TASK, choice="yes"))
    (told,) = parent.effects
    assert told == AnswerSubgroup(CommId("sub"), ask.number, "yes", "ada")
    assert parent.says("ada", to="bob").effects == ()
    known = parent.refusal(QuestionAnswered(at=START, task_id=TASK, number=ask.number, answer="no", by="user"))
    assert known.code is RejectionCode.TOO_LATE
    assert parent.team_asks("t1-1", ask.number + 2).open("t1-1").asked == 2


def test_what_a_person_is_asked_no_agent_answers() -> None:
    """The assigner of a task neither approves what is put to a role nor is offered to; the goal's user does."""
    asked = tasked().task_asks("t1-1", role="operator")
    assert TaskDecision not in legal_kinds(asked.state, ADA, START)
    assert asked.refusal(said("ada", Decision(task_id=TASK, choice="yes"), 1)).code is RejectionCode.NOT_YOUR_TASK
    assert asked.answered("yes", "t1-1").open("t1-1").question is None


def test_a_task_and_its_team_ask_side_by_side() -> None:
    """Neither question hides or replaces the other one, whatever turn the team is in, and each gets its own answer."""
    own = tasked().task_asks("t1-1").answered("yes", "t1-1").task_asks("t1-1", text="Own?").nests("t1-1")
    both = own.team_asks("t1-1", 1)
    assert [(one.number, one.turn, one.text) for one in both.open("t1-1").questions] == [(2, 0, "Own?"), (3, 1, "Well?")]
    team = both.speaks("ada", Decision(task_id=TASK, choice="no", number=3))
    assert team.effects == (AnswerSubgroup(CommId("sub"), 1, "no", "ada"),)
    assert [one.text for one in team.open("t1-1").questions] == ["Own?"]
    over = both.happens(TimerFired(at=WELL["until"]))
    assert (over.open("t1-1").questions, over.effects) == ((), ())
    known = SubgroupAsked(at=team.now, task_id=TASK, subgroup=CommId("sub"), number=1, question=Question(**WELL))
    assert team.refusal(known).code is RejectionCode.NO_CHANGE


def test_a_task_asks_a_bounded_number_of_questions() -> None:
    """Questions take no turn, so that nothing else would bound what a task writes into the log."""
    last = tasked().task_asks("t1-1", number=MAX_QUESTIONS).answered("yes", "t1-1")
    more = said("bob", TaskQuestion(**WELL, task_id=TASK, number=MAX_QUESTIONS + 1), 1)
    assert last.refusal(more).code is RejectionCode.TOO_LITTLE_LEFT
    assert TaskQuestion not in legal_kinds(last.state, BOB, START)


def test_questions_that_wait_leave_room_for_what_is_said() -> None:
    """Each entry carries all of them: one that does not fit is refused, and the group goes on."""
    long = {"text": "\U0001f600" * 2_000, "options": (), "default": "\U0001f600" * 2_000}
    names = [f"t1-{number}" for number in range(1, 31)]
    story = launched("ada", "bob").assigns("ada", *[f"{name}:bob" for name in names])
    for name in names:
        story = story.progresses(name)
    for name in names[:3]:
        story = story.task_asks(name, **long)
    with pytest.raises(IllegalEventError) as refused:
        for name in names[3:]:
            story = story.task_asks(name, **long)
    assert refused.value.code is RejectionCode.TOO_LITTLE_LEFT
    assert len(encode(Entry.of(story.log[-1], story.state, story.state.hearing))) < 150_000
    asked = said("ada", AskUser(**{**WELL, **long}), story.state.turn)
    assert story.refusal(asked).code is RejectionCode.TOO_LITTLE_LEFT
    assert story.says("ada", to="bob").holder == "bob"


def test_an_answer_reaches_who_has_asked_and_was_lost_if_nobody_else_is_there() -> None:
    """Its node is not left, so that what the user has said is there when it comes back."""
    node = {"name": "talk", "roles": ["a"], "asks": True, "max": 3, "then": "end"}
    story = launched_under(policy_of(node, roles={"b": {}}), {"a": ["ada"], "b": ["bob"]}, "ada", "bob")
    lost = story.asks("ada").loses("ada")
    for after in (lost.answered("yes"), lost.timer()):
        assert (after.phase, after.holder) == (Phase.DISCUSSING, "ada")


@pytest.mark.parametrize("words", [{"options": ("apple", "no")}, {"options": (), "default": "apple"}, {"text": "Apple?"}])
def test_all_that_a_question_holds_is_guarded(words: dict[str, Any]) -> None:
    """What must not be said is not asked either, nor offered as an answer."""
    node = {"name": "talk", "roles": ["a"], "asks": True, "max": 3, "then": "end", "guards": [{"without": ["apple"]}]}
    story = launched_under(policy_of(node, roles={"b": {}}), {"a": ["ada"], "b": ["bob"]}, "ada", "bob")
    assert story.refusal(said("ada", AskUser(**{**WELL, **words}), 1)).code is RejectionCode.GUARDED


def test_entry_with_question_decodes_to_same_entry() -> None:
    """Questions of members and of tasks, and their answers, survive encoding."""
    story = tasked()
    for event, state in [
        (story.log[-1], story.state),
        (story.asks("ada").log[-1], story.asks("ada").state),
        (story.asks("ada").answered("yes").log[-1], story.asks("ada").answered("yes").state),
        (story.task_asks("t1-1").log[-1], story.task_asks("t1-1").state),
    ]:
        entry = Entry.of(event, state, state.hearing)
        assert decode(Entry, encode(entry)) == entry
