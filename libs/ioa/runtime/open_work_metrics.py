"""What is open and what waits right now, as gauges: group setup looks at it now and then and tells Prometheus.

Counters tell what happened in one process; what is open is known to the streams alone. Nothing is read again while no log has
moved on, of many groups some stand for all, and looking never takes more than a twentieth of the time, so that neither idle groups
nor many of them cost much.
"""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Sequence
from datetime import timedelta

import structlog
from prometheus_client import Gauge

from ioa.adapters.nats.open_groups import NatsOpenGroups
from ioa.adapters.nats.stream_stats import NatsStreamStats
from ioa.errors import UnavailableError
from ioa.ports.group_log import GroupLog, StoredEntry
from ioa.protocol.ids import CommId
from ioa.protocol.messages import Phase
from ioa.runtime import group_metrics

EVERY = timedelta(seconds=15)
SAMPLE = 256
"""How many groups are looked at. Where more are open they stand for all."""
_SHARE = 20
_PAGE = 1_000

groups = Gauge(
    "ioa_groups", f"Groups that are open, nested ones too, by phase; estimated where more than {SAMPLE} are open", ["phase"]
)
tasks = Gauge(
    "ioa_tasks",
    f"Tasks that are open, by state; `suspect` is one whose lease ran out once; estimated where more than {SAMPLE} groups are open",
    ["state"],
)
waiting = Gauge("ioa_queue_waiting", "Messages of a queue that nobody has taken", ["stream", "consumer"])
taken = Gauge("ioa_queue_taken", "Messages of a queue that were taken and are not acknowledged", ["stream", "consumer"])
messages = Gauge("ioa_stream_messages", "Messages that a stream holds", ["stream"])
size = Gauge("ioa_stream_bytes", "Bytes that a stream holds", ["stream"])
limit = Gauge("ioa_stream_limit_bytes", "Bytes that a stream may hold; none of streams without a bound of their own", ["stream"])

_log = structlog.get_logger(__name__)


class OpenWorkMetrics:
    """Count what is open and what waits."""

    def __init__(
        self, log: GroupLog, standings: NatsStreamStats, open_groups: NatsOpenGroups, chance: random.Random | None = None
    ) -> None:
        self._log = log
        self._standings = standings
        self._open = open_groups
        self._chance = chance or random.Random()  # noqa: S311 - chooses whom to count, guards nothing
        self._counted: int | None = None

    async def follow(self, every: timedelta = EVERY) -> None:
        """Count at once and then `every` so often, for ever."""
        loop = asyncio.get_running_loop()
        while True:
            started = loop.time()
            try:
                await self.measure()
            except UnavailableError as error:
                _log.warning("census_put_off", error=error.message)
            await asyncio.sleep(max(every.total_seconds(), _SHARE * (loop.time() - started)))

    async def measure(self) -> None:
        """Count once.

        Raises:
            UnavailableError: JetStream does not answer; the gauges stay as they were.
        """
        for stream in await self._standings.read():
            messages.labels(stream.name).set(stream.messages)
            size.labels(stream.name).set(stream.size_bytes)
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
        for comm_id in sample:  # of each no more is kept than what counts: decoded, a launch with its policy has megabytes
            head = await self._head(comm_id)
            if head is not None and not head.entry.state.phase.is_terminal:
                by_phase[head.entry.state.phase] += 1
                suspect.update(task.suspect for task in head.entry.state.open_tasks)
        _show(by_phase, suspect, number / max(1, len(sample)))
        self._counted = newest

    async def _head(self, comm_id: CommId) -> StoredEntry | None:
        """Read a head; one that cannot be read is passed over."""
        try:
            return await self._log.last(comm_id)
        except Exception:  # noqa: BLE001 - one unreadable group must not hide all others
            group_metrics.unreadable.inc()
            _log.exception("group_unreadable", comm_id=comm_id)
            return None

    async def _sample(self) -> tuple[Sequence[CommId], int]:
        """Choose open groups, each with the same chance, and count all of them."""
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
