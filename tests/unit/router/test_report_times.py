"""What a router has heard of tasks: enough to renew their leases, and never more than it may remember."""

from __future__ import annotations

from datetime import timedelta

from ioa.group.events import TaskHeard
from ioa.group.state import GroupState
from ioa.protocol.ids import TaskId
from ioa_router.report_times import ReportTimes
from tests.unit.group.scenario import START, launched

T1, T2 = TaskId("t1-1"), TaskId("t1-2")
SECOND = timedelta(seconds=1)


def _two_tasks() -> GroupState:
    """A group with two open tasks whose leases last 30 s from the start."""
    return launched("ada", "bob", "eve").assigns_and_waits("ada", "t1-1:bob", "t1-2:eve").state


def test_nothing_is_told_before_a_lease_runs_out() -> None:
    """A timer that looks at something else writes no evidence into the log; the first lease that runs out brings all of it."""
    state, heard = _two_tasks(), ReportTimes(START)
    until = min(task.lease_until for task in state.open_tasks)
    heard.add(state.comm_id, T1, START + 9 * SECOND)
    heard.add(state.comm_id, T2, START + 12 * SECOND)
    assert heard.evidence(state, until - SECOND) == ()
    assert heard.evidence(state, until) == (
        TaskHeard(task_id=T1, at=START + 9 * SECOND),
        TaskHeard(task_id=T2, at=START + 12 * SECOND),
    )


def test_an_older_report_takes_nothing_back() -> None:
    """Reports of two routers may cross on the way: the latest counts."""
    state, heard = _two_tasks(), ReportTimes(START)
    for seconds in (9, 5):
        heard.add(state.comm_id, T1, START + seconds * SECOND)
    assert heard.evidence(state, START + 60 * SECOND) == (TaskHeard(task_id=T1, at=START + 9 * SECOND),)


def test_who_did_not_listen_is_no_witness_against_a_suspect() -> None:
    """A router that began to listen within a suspect task's lease gives it a whole lease from then on, and not a second one."""
    state = _two_tasks()
    task = state.open_tasks[0].model_copy(update={"suspect": True})
    state = state.model_copy(update={"tasks": (task,)})
    late = ReportTimes(task.lease_until - SECOND)
    (given,) = late.evidence(state, task.lease_until)
    renewed = task.model_copy(update={"lease_until": given.at + state.limits.task_lease})
    assert given == TaskHeard(task_id=T1, at=task.lease_until - SECOND)
    assert late.evidence(state.model_copy(update={"tasks": (renewed,)}), renewed.lease_until) == ()


def test_a_connection_that_was_down_is_no_witness_either() -> None:
    """What was missed while the connection was away counts as not listened to."""
    state = _two_tasks()
    task = state.open_tasks[0].model_copy(update={"suspect": True})
    state, heard = state.model_copy(update={"tasks": (task,)}), ReportTimes(START - timedelta(days=1))
    assert heard.evidence(state, task.lease_until) == ()
    heard.restart(task.lease_until - SECOND)
    assert heard.evidence(state, task.lease_until) == (TaskHeard(task_id=T1, at=task.lease_until - SECOND),)
