"""Gauges of open groups, open tasks and queued messages, which group setup measures periodically.

Groups are read again only after a log has changed, at most `SAMPLE` of them, and measuring takes at most a twentieth of the time.
"""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Sequence
from datetime import timedelta

import structlog
from prometheus_client import Gauge

from ioa.adapters.nats.stores.open_groups import NatsOpenGroups
from ioa.adapters.nats.streams.stream_stats import NatsStreamStats
from ioa.errors import UnavailableError
from ioa.ports.group_log import GroupLog, StoredEntry
from ioa.protocol.ids import CommId
from ioa.protocol.messages import Phase
from ioa.runtime import group_metrics

EVERY = timedelta(seconds=15)
SAMPLE = 256
"""Maximum groups that are read. If more groups are open, the counts are estimated from a sample."""
_PAUSE_FACTOR = 20
_PAGE = 1_000

groups = Gauge("ioa_groups", f"Open groups, including nested groups, by phase; estimated if more than {SAMPLE} are open", ["phase"])
tasks = Gauge(
    "ioa_tasks",
    f"Open tasks, by state; the lease of a `suspect` task expired once; estimated if more than {SAMPLE} groups are open",
    ["state"],
)
waiting = Gauge("ioa_queue_waiting", "Messages of a queue that are not delivered", ["stream", "consumer"])
taken = Gauge("ioa_queue_taken", "Messages of a queue that are delivered and not acknowledged", ["stream", "consumer"])
messages = Gauge("ioa_stream_messages", "Messages in a stream", ["stream"])
size = Gauge("ioa_stream_bytes", "Bytes in a stream", ["stream"])
limit = Gauge("ioa_stream_limit_bytes", "Maximum bytes of a stream; absent for streams without a limit", ["stream"])

_log = structlog.get_logger(__name__)


class OpenWorkMetrics:
    """Measure open groups, open tasks and queued messages."""

    def __init__(
        self, log: GroupLog, standings: NatsStreamStats, open_groups: NatsOpenGroups, chance: random.Random | None = None
    ) -> None:
        self._log = log
        self._standings = standings
        self._open = open_groups
        self._chance = chance or random.Random()  # noqa: S311 - chooses a sample
        self._counted: int | None = None

    async def follow(self, every: timedelta = EVERY) -> None:
        """Measure at once, and then once every `every`, until cancelled."""
        loop = asyncio.get_running_loop()
        while True:
            started = loop.time()
            try:
                await self.measure()
            except UnavailableError as error:
                _log.warning("measurement_delayed", error=error.message)
            await asyncio.sleep(max(every.total_seconds(), _PAUSE_FACTOR * (loop.time() - started)))

    async def measure(self) -> None:
        """Measure once.

        Raises:
            UnavailableError: JetStream does not answer; the gauges do not change.
        """
        for stream in await self._standings.read():
            messages.labels(stream.name).set(stream.messages)
            size.labels(stream.name).set(stream.stored_bytes)
            if stream.limit_bytes:
                limit.labels(stream.name).set(stream.limit_bytes)
            for queue in stream.queues:
                waiting.labels(stream.name, queue.name).set(queue.waiting)
                taken.labels(stream.name, queue.name).set(queue.taken)
        await self._count_groups()

    async def _count_groups(self) -> None:
        newest = await self._log.newest()
        if newest == self._counted:
            return
        sample, number = await self._sample()
        by_phase, suspect = Counter[Phase](), Counter[bool]()
        for comm_id in sample:  # keeps only the counts: a decoded launch with its policy has megabytes
            head = await self._head(comm_id)
            if head is not None and not head.entry.state.phase.is_terminal:
                by_phase[head.entry.state.phase] += 1
                suspect.update(task.suspect for task in head.entry.state.open_tasks)
        _show(by_phase, suspect, number / max(1, len(sample)))
        self._counted = newest

    async def _head(self, comm_id: CommId) -> StoredEntry | None:
        """Return the last entry of a log; None if it cannot be read."""
        try:
            return await self._log.last(comm_id)
        except Exception:  # noqa: BLE001 - one unreadable group must not hide the others
            group_metrics.unreadable.inc()
            _log.exception("group_unreadable", comm_id=comm_id)
            return None

    async def _sample(self) -> tuple[Sequence[CommId], int]:
        """Return a uniform sample of open groups, and the number of all open groups."""
        sample, number, after, complete = list[CommId](), 0, 0, False
        while not complete:
            page = await self._open.page(after=after, limit=_PAGE)
            for comm_id in page.comm_ids:
                number += 1
                if len(sample) < SAMPLE:
                    sample.append(comm_id)
                elif (place := self._chance.randrange(number)) < SAMPLE:
                    sample[place] = comm_id
            after, complete = page.last, page.complete
        return sample, number


def _show(by_phase: Counter[Phase], suspect: Counter[bool], each_stands_for: float) -> None:
    for phase in Phase:
        if not phase.is_terminal:
            groups.labels(phase.value).set(round(by_phase[phase] * each_stands_for))
    tasks.labels("running").set(round(suspect[False] * each_stands_for))
    tasks.labels("suspect").set(round(suspect[True] * each_stands_for))
