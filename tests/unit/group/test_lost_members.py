"""A member that is lost only just now may still be named, and a conclusion that is stated while members are lost says so."""

from __future__ import annotations

from datetime import timedelta

import pytest

from ioa.group.effects import PublishResult, ReportToParent
from ioa.group.events import MemberReturned, SubgroupClosed, name_of
from ioa.group.machine import legal_kinds
from ioa.group.rejection import RejectionCode
from ioa.group.state import Ended, ParentTask
from ioa.protocol.goals import Degraded, Reason
from ioa.protocol.ids import AgentId, CommId, TaskId
from ioa.protocol.messages import Phase, TaskOutcome
from tests.unit.group.scenario import START, Scenario, launched

ADA = AgentId("ada")


def _degraded(story: Scenario) -> Degraded | None:
    assert isinstance(story.state.stage, Ended)
    return story.state.stage.degraded


def test_a_member_lost_just_now_may_be_named_next_speaker() -> None:
    """It is most often back before anybody misses it; if it is not, the floor's time-out passes it over."""
    named = launched("ada", "bob", "eve").loses("bob").after(59).says("ada", to="bob")
    assert (named.holder, named.timer().holder, named.regains("bob").holder) == ("bob", "eve", "bob")


def test_the_floor_stays_with_a_named_member_while_others_come_and_go() -> None:
    """Only who is lost while it has the floor is passed over."""
    named = launched("ada", "bob", "eve").loses("bob").says("ada", to="bob")
    assert (named.loses("eve").holder, named.loses("eve").regains("eve").holder) == ("bob", "bob")


def test_a_task_of_a_lost_member_is_suspect_from_the_start() -> None:
    """It fails after one lease, as those do that it had when it was lost."""
    story = launched("ada", "bob").loses("bob").assigns_and_waits("ada", "t1-1:bob")
    assert (story.open("t1-1").suspect, story.timer().outcome("t1-1")) == (True, TaskOutcome.FAILED)


def test_a_lost_member_that_returns_does_the_task_that_it_was_given_meanwhile() -> None:
    """Its first report clears the suspicion."""
    story = launched("ada", "bob").loses("bob").assigns_and_waits("ada", "t1-1:bob").after(20).regains("bob").progresses("t1-1")
    assert (story.open("t1-1").suspect, story.finishes("t1-1").outcome("t1-1")) == (False, TaskOutcome.DONE)


@pytest.mark.parametrize(("seconds", "kinds"), [(59, {"DISCUSSION"}), (60, set())])
def test_who_is_lost_for_a_floor_timeout_is_named_no_more(seconds: int, kinds: set[str]) -> None:
    """What may be said follows from the time; a task for oneself, a question to the user and the conclusion are always left."""
    state = launched("ada", "bob").loses("bob").state
    legal = legal_kinds(state, ADA, START + timedelta(seconds=seconds))
    assert set(map(name_of, legal)) == {
        "SYNC_TASK_ASSIGNMENT",
        "ASYNC_TASK_ASSIGNMENT",
        "CONCLUDE_GROUP_DISCUSSION",
        "PASS",
        "ASK_USER",
        *kinds,
    }


def test_a_lost_holder_whose_message_comes_may_give_a_task_to_itself() -> None:
    """It is evidently alive, so that the task is not suspect."""
    story = launched("ada").loses("ada").after(600).assigns_and_waits("ada", "t1-1:ada")
    assert (story.phase, story.open("t1-1").suspect) == (Phase.ASSIGNED, False)


def test_the_return_of_a_stranger_moves_nothing() -> None:
    """While everybody is lost, the first member that returns takes the floor; who is no member is refused."""
    story = launched("ada", "bob").loses("bob").loses("ada")
    refused = story.refusal(MemberReturned(at=START, agent_id=AgentId("mallory")))
    assert (refused.code, story.regains("bob").holder) == (RejectionCode.NO_CHANGE, "bob")


def test_a_conclusion_without_a_lost_member_says_what_is_missing() -> None:
    """The goal's result names who was lost and which of its tasks came to nothing; the reason stays what the speaker said."""
    story = launched("ada", "bob", "eve").assigns_and_waits("ada", "t1-1:bob", "t1-2:eve").finishes("t1-2").loses("bob").timer()
    ended = story.announces("ada").concludes("ada")
    (effect,) = ended.effects
    assert isinstance(effect, PublishResult)
    expected = Degraded(lost=(AgentId("bob"),), tasks=(TaskId("t1-1"),))
    assert (effect.result.reason, effect.result.degraded, _degraded(ended)) == (Reason.CONCLUDED, expected, expected)


def test_what_another_member_has_done_instead_is_not_missing() -> None:
    """A task that is given out again bears the same name in a later turn."""
    story = launched("ada", "bob", "eve").assigns_and_waits("ada", "t1-sum:bob").loses("bob").timer()
    story = story.assigns_and_waits("ada", "t2-sum:eve").finishes("t2-sum")
    assert _degraded(story.announces("ada").concludes("ada")) == Degraded(lost=(AgentId("bob"),))


def test_a_conclusion_of_a_whole_team_is_not_degraded() -> None:
    """Who was lost and has returned is not missed any more."""
    story = launched("ada", "bob").loses("bob").regains("bob").announces("ada").concludes("ada")
    assert _degraded(story) is None


def test_what_a_nested_team_lacks_its_parent_lacks_too() -> None:
    """The task that the team served stands for its tasks, in whatever turn the parent concludes."""
    parent = ParentTask(comm_id=CommId("room"), task_id=TaskId("t1-1"))
    team = launched("bob", "zoe", parent=parent, depth=1).assigns_and_waits("bob", "t1-9:zoe").loses("zoe").timer()
    (report,) = team.announces("bob").concludes("bob").effects
    assert isinstance(report, ReportToParent) and report.degraded == Degraded(lost=(AgentId("zoe"),), tasks=(TaskId("t1-9"),))
    story = launched("ada", "bob").assigns_and_waits("ada", "t1-1:bob").nests("t1-1")
    closed = SubgroupClosed(
        at=START,
        task_id=TaskId("t1-1"),
        subgroup=CommId("sub"),
        reason=report.reason,
        content=report.content,
        degraded=report.degraded,
    )
    ended = story.happens(closed).announces("ada").concludes("ada")
    assert _degraded(ended) == Degraded(lost=(AgentId("zoe"),), tasks=(TaskId("t1-1"),))
