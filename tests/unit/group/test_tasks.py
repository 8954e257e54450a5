"""Tasks: leases with one suspicion, closed once, and what a nested team's end does to its task."""

from __future__ import annotations

from datetime import timedelta

from ioa.group.effects import CancelSubgroup, ReportToParent, owed_effects
from ioa.group.events import LaunchAbandoned, MemberLost, TimerFired
from ioa.group.machine import step
from ioa.group.state import ClosedTask, ParentTask
from ioa.protocol.goals import Reason
from ioa.protocol.ids import AgentId, CommId, TaskId
from ioa.protocol.messages import InformTaskProgress, Phase, TaskOutcome
from ioa.protocol.usage import Usage
from tests.unit.group.scenario import COMM, GOAL, MAX_TOKENS, START, Scenario, launched


def _assigned(*members: str) -> Scenario:
    return launched(*(members or ("ada", "bob"))).assigns_and_waits("ada", "t1-1:bob")


def _closed(story: Scenario, task_id: str) -> ClosedTask:
    task = story.state.task(TaskId(task_id))
    assert isinstance(task, ClosedTask)
    return task


def test_a_task_whose_lease_runs_out_once_is_only_suspect() -> None:
    """The whole system may have been down; the assignee has one lease to prove itself."""
    story = _assigned().timer()
    assert (story.phase, story.open("t1-1").suspect, story.open("t1-1").lease_until) == (
        Phase.ASSIGNED,
        True,
        START + timedelta(seconds=60),
    )


def test_a_task_whose_lease_runs_out_twice_in_a_row_fails() -> None:
    """The floor returns to the assigner, who learns why."""
    story = _assigned().timers(2)
    assert (story.holder, _closed(story, "t1-1").outcome, _closed(story, "t1-1").why) == (
        "ada",
        TaskOutcome.FAILED,
        "bob reported nothing within its lease",
    )


def test_an_outage_fails_no_task() -> None:
    """A timer that comes much too late finds leases that nobody could renew; they start anew, for suspects too."""
    late = _assigned().timer().after(3_600)
    late = late.happens(TimerFired(at=late.now))
    assert (late.outcome("t1-1"), late.timer().outcome("t1-1")) == (None, TaskOutcome.FAILED)


def test_progress_clears_the_suspicion() -> None:
    """Two expiries must come in a row; a task that reports lives as long as the group."""
    story = _assigned()
    for _ in range(5):
        story = story.timer().progresses("t1-1")
    assert (story.phase, story.open("t1-1").suspect, story.open("t1-1").progress) == (Phase.ASSIGNED, False, 5)


def test_one_timer_expires_every_lease_that_is_due() -> None:
    """Tasks with the same deadline need one event, and a floor time-out at the same instant is served too."""
    story = launched("ada", "bob", "eve").assigns("ada", "t1-1:bob", "t1-2:eve").after(60)
    story = story.happens(TimerFired(at=story.now))
    assert (story.holder, story.open("t1-1").suspect, story.open("t1-2").suspect) == ("ada", True, True)


def test_the_assigner_may_give_itself_a_task() -> None:
    """It holds no floor while the task runs, but reports like everybody."""
    story = launched("ada").assigns_and_waits("ada", "t1-1:ada")
    assert (story.holder, story.finishes("t1-1").holder) == (None, "ada")


def test_a_lost_assignees_task_fails_when_its_lease_runs_out() -> None:
    """The lost lease of the member is the first expiry, the task's own the second."""
    story = _assigned("ada", "bob", "eve").after(20).loses("bob").timer()
    assert (story.holder, _closed(story, "t1-1").outcome, story.now) == (
        "ada",
        TaskOutcome.FAILED,
        START + timedelta(seconds=30),
    )


def test_a_lost_assignee_that_returns_in_time_keeps_its_task() -> None:
    """A report is all that counts."""
    story = _assigned().loses("bob").after(29).regains("bob").progresses("t1-1").timer()
    assert (story.phase, story.outcome("t1-1")) == (Phase.ASSIGNED, None)


def test_a_lease_that_ran_out_unnoticed_is_no_evidence_against_a_lost_member() -> None:
    """When the whole system was down, the task gets a full lease from the moment somebody looks again."""
    story = _assigned().after(1_000)
    story = story.happens(MemberLost(at=story.now, agent_id=AgentId("bob")))
    assert story.open("t1-1").lease_until == START + timedelta(seconds=1_030)


def test_a_lost_member_may_still_report_what_it_finished() -> None:
    """The result of a task is welcome until the task is given up."""
    story = _assigned().loses("bob").finishes("t1-1")
    assert (story.holder, story.outcome("t1-1")) == ("ada", TaskOutcome.DONE)


def test_the_clock_may_go_back() -> None:
    """A router whose clock is behind neither expires nor ends anything early."""
    story = _assigned().after(-3_600).progresses("t1-1")
    assert story.happens(TimerFired(at=story.open("t1-1").lease_until)).open("t1-1").suspect


def test_a_nested_teams_conclusion_is_its_tasks_result() -> None:
    """The floor returns as if the assignee had reported, and nothing is left to cancel."""
    story = _assigned().nests("t1-1").nested_ends("t1-1")
    assert (story.holder, story.outcome("t1-1"), story.effects) == ("ada", TaskOutcome.DONE, ())


def test_a_nested_teams_failure_is_its_tasks_failure() -> None:
    """The task says for which reason the team failed."""
    story = _assigned().nests("t1-1").nested_ends("t1-1", reason=Reason.MAX_TURNS)
    assert (_closed(story, "t1-1").outcome, _closed(story, "t1-1").why) == (TaskOutcome.FAILED, "max_turns")


def test_a_task_that_is_closed_otherwise_cancels_its_nested_team() -> None:
    """The assignee's own result, a lost lease and a report that is too dear all do."""
    nested = _assigned().nests("t1-1")
    dear = InformTaskProgress(task_id=TaskId("t1-1"), number=1, usage=Usage(tokens_out=MAX_TOKENS))
    ways = (nested.finishes("t1-1"), nested.timers(2), nested.speaks("bob", dear, turn=1))
    cancelled = [tuple(effect.subgroup for effect in way.effects if isinstance(effect, CancelSubgroup)) for way in ways]
    assert cancelled == [("sub",)] * 3


def test_opening_a_nested_team_renews_the_lease() -> None:
    """It is a sign of life."""
    story = _assigned().timer().nests("t1-1")
    assert (story.open("t1-1").suspect, story.open("t1-1").lease_until) == (False, START + timedelta(seconds=60))


def test_a_nested_team_reports_to_its_parent() -> None:
    """Its conclusion is no result of the goal, which is the root group's to give."""
    parent = ParentTask(comm_id=CommId("root"), task_id=TaskId("t1-1"))
    story = launched("bob", parent=parent, depth=1).announces("bob").concludes("bob")
    assert story.effects == (ReportToParent(parent, COMM, Reason.CONCLUDED, "Ten.", ()),)


def test_a_nested_team_that_was_never_opened_reports_to_its_parent_too() -> None:
    """A launch that is abandoned in a nested team must not end the whole goal."""
    parent = ParentTask(comm_id=CommId("root"), task_id=TaskId("t1-1"))
    event = LaunchAbandoned(
        at=START,
        comm_id=COMM,
        goal_id=GOAL,
        by=AgentId("bob"),
        reason=Reason.CANCELLED,
        content="Too late.",
        parent=parent,
    )
    assert step(None, event).effects == (ReportToParent(parent, COMM, Reason.CANCELLED, "Too late.", ()),)


def test_settling_a_group_cancels_every_nested_team_that_has_not_ended() -> None:
    """A router that died before an earlier effect leaves none behind, and of those that have reported nothing is read again."""
    story = launched("ada", "bob").assigns("ada", *(f"t1-{place}:bob" for place in (1, 2, 3)))
    for place in (1, 2, 3):
        story = story.nests(f"t1-{place}", f"sub{place}")
    story = story.nested_ends("t1-1", "sub1").finishes("t1-2")
    states = story.state, story.cancelled().state
    cancelled = [[one.subgroup for one in owed_effects(state) if isinstance(one, CancelSubgroup)] for state in states]
    assert cancelled == [["sub2"], ["sub2", "sub3"]]
