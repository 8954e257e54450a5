"""Progress that is no entry: which reports are news, how the others are judged, and how they keep a task's lease."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest

from ioa.group.events import Said, TaskHeard, TimerFired
from ioa.group.progress import check_progress, is_news
from ioa.group.rejection import IllegalEventError, RejectionCode
from ioa.group.state import GroupState
from ioa.protocol.ids import TaskId
from ioa.protocol.messages import InformTaskProgress, TaskOutcome
from ioa.protocol.usage import Usage
from tests.unit.group.scenario import START, Scenario, launched, said

T1 = TaskId("t1-1")


def _tasked() -> Scenario:
    return launched("ada", "bob", "eve").assigns_and_waits("ada", "t1-1:bob", "t1-2:eve")


def _at_work() -> Scenario:
    return _tasked().progresses("t1-1")


def _report(number: int = 2, tokens: int = 0, sender: str = "bob", turn: int = 1, at: datetime = START) -> Said:
    return said(sender, InformTaskProgress(task_id=T1, number=number, usage=Usage(tokens_in=tokens)), turn, at)


def _news(state: GroupState, report: Said) -> bool:
    assert isinstance(report.message.payload, InformTaskProgress)
    return is_news(state, report, report.message.payload)


def _check(state: GroupState, report: Said) -> None:
    assert isinstance(report.message.payload, InformTaskProgress)
    check_progress(state, report, report.message.payload)


def _heard(seconds: float, *, at: float) -> TimerFired:
    heard = TaskHeard(task_id=T1, at=START + timedelta(seconds=seconds))
    return TimerFired(at=START + timedelta(seconds=at), heard=(heard,))


def _without_budget(state: GroupState) -> GroupState:
    return state.model_copy(update={"limits": state.limits.model_copy(update={"max_tokens": None, "max_cost_micros": None})})


def test_what_the_machine_needs__news() -> None:
    """The acknowledgement, and what a budget is charged with; a mere sign of life is not, of a suspect task either."""
    news = [_news(_tasked().state, _report(1)), _news(_at_work().state, _report(tokens=5))]
    signs = [_news(state, _report()) for state in (_at_work().state, _at_work().timer().state)]
    assert (news, signs) == ([True, True], [False, False])


def test_without_a_budget_usage_may_wait_for_the_result() -> None:
    """Nothing is bounded by it, nor by what the report itself has cost: with a budget, that is charged at once."""
    report = _report()
    header = report.message.header.model_copy(update={"usage": Usage(tokens_in=1)})
    dear = report.model_copy(update={"message": report.message.model_copy(update={"header": header})})
    state = _at_work().state
    assert not _news(_without_budget(state), _report(tokens=5))
    assert [_news(one, dear) for one in (state, _without_budget(state))] == [True, False]


@pytest.mark.parametrize(
    "report",
    [_report(1), _report(sender="eve"), _report(sender="mallory"), _report(turn=2), _report(at=START + timedelta(days=1))],
    ids=["stale", "not-its-own", "stranger", "turn", "late"],
)
def test_a_report_that_is_no_entry_is_judged_like_one_that_is(report: Said) -> None:
    """The same code, the same words, the same way out."""
    with pytest.raises(IllegalEventError) as judged:
        _check(_at_work().state, report)
    refused = _at_work().refusal(report)
    assert (judged.value.code, str(judged.value), judged.value.legal) == (refused.code, str(refused), refused.legal)


def test_a_report_on_a_closed_task_is_refused() -> None:
    """However it is looked at."""
    with pytest.raises(IllegalEventError) as judged:
        _check(_at_work().finishes("t1-1").state, _report())
    assert (judged.value.code, _news(_at_work().finishes("t1-1").state, _report())) == (RejectionCode.TASK_CLOSED, False)


def test_a_legal_report_is_let_through() -> None:
    """It changes nothing."""
    _check(_at_work().state, _report())


def test_what_was_heard_keeps_the_lease() -> None:
    """The task that was heard of runs on to the next half of a lease, the silent one is suspect."""
    story = _at_work().after(30)
    story = story.happens(_heard(20, at=30))
    assert (story.open("t1-1").lease_until, story.open("t1-1").suspect) == (START + timedelta(seconds=60), False)
    assert story.open("t1-2").suspect


def test_what_was_heard_clears_a_suspicion() -> None:
    """A suspect task that reports is not given up."""
    story = _at_work().timer().happens(_heard(40, at=60))
    assert (story.open("t1-1").suspect, story.outcome("t1-2")) == (False, TaskOutcome.FAILED)


def test_what_was_heard_too_long_ago_keeps_nothing() -> None:
    """The lease has run out all the same."""
    late = _at_work().happens(_heard(-30, at=30))
    assert late.open("t1-1").suspect


def test_a_report_is_heard_once() -> None:
    """The same firing again finds nothing due."""
    fired = _heard(20, at=30)
    assert _at_work().happens(fired).refusal(fired).code is RejectionCode.NOTHING_DUE


def test_nothing_can_be_heard_of_the_future() -> None:
    """A router whose clock runs ahead keeps a lease no longer than from the moment in which it looked."""
    story = _at_work().happens(_heard(3_600, at=30))
    assert story.open("t1-1").lease_until == START + timedelta(seconds=60)
