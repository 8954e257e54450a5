"""Keeps the lease of a task by progress reports."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import structlog

from ioa.agent.group_history import GroupHistory
from ioa.agent.send import MessageSender, seconds_to_wait
from ioa.agent.task_context import TaskContext
from ioa.errors import IoaError, SupersededError
from ioa.group.state import OpenTask
from ioa.ports.meter import Meter
from ioa.protocol.messages import InformTaskProgress
from ioa.protocol.texts import shortened
from ioa.protocol.usage import MAX_COUNT, NOTHING, Usage

_REPORTED_AFTER, _REPORTED_AFTER_IN_LINE = 1 / 3, 2 / 3
"""Shares of the lease after which a running task, and a task that waits for a slot, is reported again."""
_LOOK_EVERY = timedelta(milliseconds=250)
_NEWS_EVERY = timedelta(seconds=1)
_MAX_NEWS_BYTES = 4_000
_MAX_DRAFT_BYTES = 3_900

_log = structlog.get_logger(__name__)


class TaskLease:
    """The lease of one task. `running`, once set, has the progress of its function; `meter` counts the cost of the task."""

    def __init__(self, sender: MessageSender, history: GroupHistory, task: OpenTask) -> None:
        assert history.state is not None
        self._sender = sender
        self._history = history
        self._task = task
        self._number = task.progress
        self._lease = history.state.limits.task_lease.total_seconds()
        self.running: TaskContext | None = None
        self.meter = Meter(task.spent)
        self.approach_usage: Usage | None = None
        self._draft = ""

    async def keep(self) -> None:
        """Report at once, then three times per lease, less often before the task runs, and soon after progress or a draft."""
        loop = asyncio.get_running_loop()
        due = loop.time()
        reported = due - _NEWS_EVERY.total_seconds()
        content: str = ""
        fraction: float | None = None
        while True:
            news, draft = None, self._draft
            if self.running is not None and loop.time() >= reported + _NEWS_EVERY.total_seconds():
                news, draft = self.running.take_progress(), _end_of(self.running.draft)
            if news is not None:
                content, fraction = news
            if news is not None or draft != self._draft or loop.time() >= due:
                self._draft = draft
                pause = await self._report(content, fraction)
                reported = loop.time()
                due = reported + pause
            await asyncio.sleep(min(_LOOK_EVERY.total_seconds(), max(0.0, due - loop.time())))

    @property
    def usage(self) -> Usage | None:
        """The cost of the task so far; None if there is none."""
        return self.meter.total if self.meter.total != NOTHING else None

    def count_approach(self, decision: Meter) -> None:
        """Count the cost of deciding how to do the task."""
        self.approach_usage = decision.total if decision.total != NOTHING else None
        self.meter.add(decision.total)
        self.meter.note(*decision.calls)

    async def _report(self, content: str, fraction: float | None) -> float:
        """Send a report with the next number, and return the seconds until the next report is due."""
        task = self._history.state.task(self._task.task_id) if self._history.state is not None else None
        seen = task.progress if isinstance(task, OpenTask) else 0
        self._number = min(max(self._number, seen) + 1, MAX_COUNT)
        report = InformTaskProgress(
            task_id=self._task.task_id,
            number=self._number,
            content=shortened(content, _MAX_NEWS_BYTES),
            fraction=fraction,
            usage=self.usage,
            draft=self._draft,
        )
        try:
            await self._sender.send_once(self._history, report, self._task.turn)
        except SupersededError:
            raise
        except IoaError as error:
            _log.warning("progress_not_heard", task_id=self._task.task_id, error=error.message)
            soon = min(_NEWS_EVERY.total_seconds(), self._lease * _REPORTED_AFTER)
            return max(soon, seconds_to_wait(error))
        return self._lease * (_REPORTED_AFTER_IN_LINE if self.running is None else _REPORTED_AFTER)


def _end_of(draft: str) -> str:
    """Return the end of a draft that is too long."""
    data = draft[-_MAX_DRAFT_BYTES:].encode("utf-8", "replace")
    end = data[-_MAX_DRAFT_BYTES:].decode("utf-8", "ignore")
    return draft if end == draft else f"… {end}"
