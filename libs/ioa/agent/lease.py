"""Keeping a task's lease: reporting progress as long as the task is worked on."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import structlog

from ioa.agent.history import GroupHistory
from ioa.agent.speech import Voice
from ioa.agent.workspace import RunningTask
from ioa.errors import UnavailableError
from ioa.group.state import OpenTask
from ioa.protocol.messages import MAX_CONTENT_CHARS, InformTaskProgress

_REPORTS_PER_LEASE = 3
_LOOK_EVERY = timedelta(milliseconds=250)
_NEWS_EVERY = timedelta(seconds=1)

_log = structlog.get_logger(__name__)


class TaskLease:
    """The lease of one task. `running`, once set, is asked for the news its function has."""

    def __init__(self, voice: Voice, history: GroupHistory, task: OpenTask) -> None:
        assert history.state is not None
        self._voice = voice
        self._history = history
        self._task = task
        self._number = task.progress
        self._every = history.state.limits.task_lease.total_seconds() / _REPORTS_PER_LEASE
        self.running: RunningTask | None = None

    async def keep(self) -> None:
        """Report at once, then thrice a lease, and within a second when there is news; for ever."""
        loop = asyncio.get_running_loop()
        due = reported = loop.time()
        content: str = ""
        fraction: float | None = None
        while True:
            now = loop.time()
            news = None
            if self.running is not None and now >= reported + _NEWS_EVERY.total_seconds():
                news = self.running.take_progress()
            if news is not None:
                content, fraction = news
            if news is not None or now >= due:
                heard = await self._report(content, fraction)
                reported = loop.time()
                due = reported + (self._every if heard else min(1.0, self._every))
            await asyncio.sleep(min(_LOOK_EVERY.total_seconds(), max(0.01, due - loop.time())))

    async def _report(self, content: str, fraction: float | None) -> bool:
        self._number += 1
        report = InformTaskProgress(
            task_id=self._task.task_id, number=self._number, content=content[:MAX_CONTENT_CHARS], fraction=fraction
        )
        try:
            await self._voice.report_progress(self._history, report, self._task.turn)
        except UnavailableError as error:
            _log.warning("progress_not_heard", task_id=self._task.task_id, error=error.message)
            return False
        return True
