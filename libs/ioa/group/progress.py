"""Reports of progress that change nothing in a group but how long a task's lease lasts, and need no entry for that.

What is news is an entry. Other reports are heard by the routers, and taken in when the leases are looked at (`TimerFired.heard`).
"""

from __future__ import annotations

from ioa.group import tasks
from ioa.group.events import Said
from ioa.group.machine import check_said
from ioa.group.rejection import IllegalEventError
from ioa.group.state import GroupState, OpenTask
from ioa.protocol.messages import InformTaskProgress
from ioa.protocol.usage import NOTHING


def is_news(state: GroupState, said: Said, report: InformTaskProgress) -> bool:
    """Whether a report of progress has to be an entry, if it is legal.

    It has to be if it acknowledges its task, or tells of usage that a budget is charged with. Without a budget, usage may wait for
    the result, and so that of the report itself is ignored: nothing is bounded by it.
    """
    limits = state.limits
    task = state.task(report.task_id)
    if state.course is not None and not _is_taken(state, said, report):
        return True  # what is legal instead, its policy tells, which is asked for entries alone
    if not isinstance(task, OpenTask):
        return False
    if task.progress == 0:
        return True
    if limits.max_tokens is None and limits.max_cost_micros is None:
        return False
    if (said.message.header.usage or NOTHING) != NOTHING:
        return True
    return report.usage is not None and report.usage.beyond(task.spent) != NOTHING


def _is_taken(state: GroupState, said: Said, report: InformTaskProgress) -> bool:
    try:
        tasks.check_progress(state, said, report)
    except IllegalEventError:
        return False
    return True


def check_progress(state: GroupState, said: Said, report: InformTaskProgress) -> None:
    """Judge a report that needs no entry as `step` would judge it.

    Raises:
        IllegalEventError: It is not legal now.
    """
    check_said(state, said, lambda: tasks.check_progress(state, said, report))
