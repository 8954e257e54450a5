"""Keeps the lease of a task by progress reports, and counts the cost of the task."""

from __future__ import annotations

import asyncio

import structlog

from ioa.agent.groups.membership import Membership
from ioa.agent.send import seconds_to_wait
from ioa.agent.task_context import TaskContext
from ioa.errors import ConflictError, IoaError, SupersededError
from ioa.group.rejection import RejectionCode
from ioa.group.requests import Rejected
from ioa.group.state import OpenTask
from ioa.ports.meter import Meter
from ioa.protocol.messages import InformTaskProgress
from ioa.protocol.texts import shortened
from ioa.protocol.usage import NOTHING

_REPORTED_AFTER = 1 / 3
"""Share of the lease after which a task is reported again."""
_LOOK_SECONDS, _NEWS_SECONDS = 0.25, 1.0
"""How often progress is looked for, and least time between two reports."""
_MAX_NEWS_BYTES = 4_000
_MAX_DRAFT_CHARS = 3_900
_LOST = {RejectionCode.TASK_CLOSED, RejectionCode.TOO_LATE, RejectionCode.GROUP_ENDED, RejectionCode.NOT_A_MEMBER}

_log = structlog.get_logger(__name__)


class LeaseLostError(ConflictError):
    """The group has closed the task: it must not go on, and nothing is reported."""


class TaskLease:
    """The lease of one task. `running`, once set, has the progress of its function; `meter` counts the cost of the task."""

    def __init__(self, member: Membership, task: OpenTask) -> None:
        self._member = member
        self._task = task
        self._number = task.progress
        self._lease = member.state.limits.task_lease.total_seconds()
        self.running: TaskContext | None = None
        self.meter = Meter(task.spent)

    async def keep(self) -> None:
        """Report at once, then three times per lease, and soon after progress or a draft.

        Raises:
            LeaseLostError: The group has closed the task.
        """
        loop = asyncio.get_running_loop()
        due, draft = loop.time(), ""
        told: tuple[str, float | None] = ("", None)
        while True:
            news, last_draft, look_after = None, draft, _LOOK_SECONDS
            if self.running is not None:
                news, draft = self.running.take_progress(), _end_of(self.running.draft)
            if news is not None or draft != last_draft or loop.time() >= due:
                told = news or told
                due = loop.time() + await self._report(*told, draft)
                look_after = _NEWS_SECONDS
            await asyncio.sleep(min(look_after, max(0.0, due - loop.time())))

    async def _report(self, content: str, fraction: float | None, draft: str) -> float:
        """Send a report with the next number, and return the seconds until the next report is due."""
        task = self._member.state.task(self._task.task_id)
        seen = task.progress if isinstance(task, OpenTask) else 0
        self._number = max(self._number, seen) + 1
        report = InformTaskProgress(
            task_id=self._task.task_id,
            number=self._number,
            content=shortened(content, _MAX_NEWS_BYTES),
            fraction=fraction,
            usage=None if self.meter.total == NOTHING else self.meter.total,
            draft=draft,
        )
        try:
            answer = await self._member.say_once(report, self._task.turn)
        except SupersededError:
            raise
        except IoaError as error:
            _log.warning("progress_not_heard", error=error.message)
            return max(min(_NEWS_SECONDS, self._lease * _REPORTED_AFTER), seconds_to_wait(error))
        if isinstance(answer, Rejected) and answer.code in _LOST:
            raise LeaseLostError(answer.message)
        return self._lease * _REPORTED_AFTER


def _end_of(draft: str) -> str:
    """Return the end of a draft that is too long."""
    end = draft[-_MAX_DRAFT_CHARS:].encode("utf-8", "replace").decode()
    return end if len(draft) <= _MAX_DRAFT_CHARS else f"… {end}"
