"""What is open and what waits right now, as gauges: group setup looks at it now and then and tells Prometheus.

Counters tell what happened in one process; what is open is known to the streams alone. Nothing is read again while no log has
moved on, and looking never takes more than a twentieth of the time, so that neither idle groups nor many of them cost much.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence
from datetime import timedelta

import structlog
from prometheus_client import Gauge

from ioa.errors import UnavailableError
from ioa.group.state import GroupState
from ioa.ports.group_log import GroupLog
from ioa.ports.standing import Standings
from ioa.protocol.ids import CommId
from ioa.protocol.messages import Phase

EVERY = timedelta(seconds=15)
_SHARE = 20

groups = Gauge("ioa_groups", "Groups that are open, nested ones too, by phase", ["phase"])
tasks = Gauge("ioa_tasks", "Tasks that are open, by state; `suspect` is one whose lease ran out once", ["state"])
waiting = Gauge("ioa_queue_waiting", "Messages of a queue that nobody has taken", ["stream", "consumer"])
taken = Gauge("ioa_queue_taken", "Messages of a queue that were taken and are not acknowledged", ["stream", "consumer"])
messages = Gauge("ioa_stream_messages", "Messages that a stream holds", ["stream"])
size = Gauge("ioa_stream_bytes", "Bytes that a stream holds", ["stream"])

_log = structlog.get_logger(__name__)


class Census:
    """Count what is open and what waits."""

    def __init__(self, log: GroupLog, standings: Standings, open_groups: Callable[[], Sequence[CommId]]) -> None:
        self._log = log
        self._standings = standings
        self._open_groups = open_groups
        self._counted: tuple[int, Sequence[CommId]] | None = None

    async def follow(self, every: timedelta = EVERY) -> None:
        """Count at once and then `every` so often, for ever."""
        loop = asyncio.get_running_loop()
        while True:
            started = loop.time()
            try:
                await self.take()
            except UnavailableError as error:
                _log.warning("census_put_off", error=error.message)
            await asyncio.sleep(max(every.total_seconds(), _SHARE * (loop.time() - started)))

    async def take(self) -> None:
        """Count once.

        Raises:
            UnavailableError: JetStream does not answer; the gauges stay as they were.
        """
        for stream in await self._standings.read():
            messages.labels(stream.name).set(stream.messages)
            size.labels(stream.name).set(stream.size_bytes)
            for queue in stream.queues:
                waiting.labels(stream.name, queue.name).set(queue.waiting)
                taken.labels(stream.name, queue.name).set(queue.taken)
        await self._count_groups()

    async def _count_groups(self) -> None:
        present = (await self._log.newest(), self._open_groups())
        if present == self._counted:
            return
        heads = [await self._log.last(comm_id) for comm_id in present[1]]
        states = [head.entry.state for head in heads if head is not None and not head.entry.state.phase.is_terminal]
        _show(states)
        self._counted = present


def _show(states: Sequence[GroupState]) -> None:
    by_phase = Counter(state.phase for state in states)
    for phase in Phase:
        if not phase.is_terminal:
            groups.labels(phase.value).set(by_phase[phase])
    suspect = [task.suspect for state in states for task in state.open_tasks]
    tasks.labels("running").set(suspect.count(False))
    tasks.labels("suspect").set(suspect.count(True))
