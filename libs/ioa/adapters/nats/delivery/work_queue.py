"""Work queues: workers take messages from a shared durable consumer and acknowledge them when they are processed.

A message whose processing fails is delivered again after a growing delay: without limit if a dependency was unavailable, since
accepted messages must not be lost. After five other failures in a process the message is poison: it becomes a dead letter and
leaves the queue. The server's count of deliveries is not used, because it includes deliveries that an outage has ended.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial

import nats.errors
import structlog
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.js import JetStreamContext
from prometheus_client import Counter, Histogram

from ioa.adapters.nats.streams.topology import ACK_WAIT
from ioa.adapters.nats.wire.connection import until_connected
from ioa.adapters.nats.wire.subscriptions import until_renewal
from ioa.concurrency import TaskGroup
from ioa.errors import ERRORS, NotYetError, Retry, UnavailableError, reason_of, row_of
from ioa.ports.delivery import DeadLetters
from ioa.protocol.operation.dead_letters import DeadReason

MAX_FAILURES = 5
"""Failures of a message in a process after which it becomes a dead letter; unavailable dependencies do not count."""

_PULL_SECONDS = 5.0
"""Time after which a pull request is sent again, since it may be lost."""
_RETRY_AFTER = timedelta(seconds=1)
_MAX_RETRY_AFTER = timedelta(seconds=30)
_MAX_COUNTED = 10_000
"""Maximum messages whose failures are counted."""

_log = structlog.get_logger(__name__)

deliveries = Counter("ioa_deliveries_total", "Messages taken off a work queue, by what became of them", ["stream", "outcome"])
redeliveries = Counter("ioa_redeliveries_total", "Deliveries of a message that had been delivered before", ["stream"])
work_seconds = Histogram(
    "ioa_delivery_duration_seconds",
    "Time to do the work of one message of a queue",
    ["stream"],
    buckets=(0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0),
)


@dataclass(frozen=True)
class Delivery:
    """A message that this worker processes.

    Attributes:
        attempt: Number of this delivery, from 1.
        identity: Identity of the stored message, the same for each delivery.
        stored_at: When the server stored the message, by the server's clock.
        seq: Sequence in the stream.
    """

    subject: str
    data: bytes
    headers: Mapping[str, str]
    attempt: int
    identity: str
    stored_at: datetime
    seq: int = 0


Work = Callable[[Delivery], Awaitable[None]]
SetAside = Callable[[Delivery, Exception], Awaitable[None]]
"""Stores a message that cannot be processed, with the error. Raises if the message must stay in the queue."""


def into_dead_letters(dead: DeadLetters, reason: DeadReason = DeadReason.UNDELIVERABLE) -> SetAside:
    """Return a function that stores poison in the stream of dead letters."""

    async def set_aside(delivery: Delivery, error: Exception) -> None:
        why = f"The work on it failed {MAX_FAILURES} times: {reason_of(error)}"
        await dead.put(reason, why, subject=delivery.subject, data=delivery.data, key=delivery.identity)

    return set_aside


async def consume(client: Client, stream: str, durable: str, work: Work, *, set_aside: SetAside, max_concurrent: int = 1) -> None:
    """Process messages until cancelled; cancelling returns unfinished messages to the queue at once.

    If `work` raises, the message is delivered again after the error's `retry_after`, or after 1, 2, 4 … 30 s; `set_aside`
    stores poison. At most `max_concurrent` messages are processed concurrently.
    """
    worker, slots = _Worker(work, set_aside), asyncio.Semaphore(max_concurrent)

    async def process(message: Msg) -> None:
        try:
            await worker.process(group, message)
        finally:
            slots.release()

    async with TaskGroup() as group, _open_pulls(client, stream, durable) as pulls:
        while True:
            await slots.acquire()
            group.create_task(process(await _next(client, pulls)))


@asynccontextmanager
async def _open_pulls(client: Client, stream: str, durable: str) -> AsyncIterator[JetStreamContext.PullSubscription]:
    pulls = await client.jetstream().pull_subscribe_bind(durable, stream)
    try:
        yield pulls
    finally:  # otherwise the server delivers to the last pull request
        with suppress(nats.errors.Error, OSError):
            await pulls.unsubscribe()


async def _next(client: Client, pulls: JetStreamContext.PullSubscription) -> Msg:
    """Wait for a message; send the pull request again after its end and after a reconnect."""
    while True:
        try:
            await until_connected(client)
            with until_renewal(client) as waits:
                [message] = await waits.next(partial(pulls.fetch, timeout=_PULL_SECONDS))
                return message
        except (nats.errors.Error, OSError) as error:
            _log.warning("pull_failed", error=reason_of(error))
            await asyncio.sleep(_RETRY_AFTER.total_seconds())


class _Worker:
    """Processes messages, and counts the failures of each message in this process."""

    def __init__(self, work: Work, set_aside: SetAside) -> None:
        self._work = work
        self._set_aside = set_aside
        self._failures: dict[str, int] = {}
        self._running: set[str] = set()

    async def process(self, group: asyncio.TaskGroup, message: Msg) -> None:
        """Process a message, unless an earlier delivery of it is being processed."""
        delivery, stream = _read_delivery(message), message.metadata.stream
        if delivery.identity in self._running:
            deliveries.labels(stream, "under_way").inc()
            return
        self._running.add(delivery.identity)
        if delivery.attempt > 1:
            redeliveries.labels(stream).inc()
        outcome, started = "given_back", time.perf_counter()
        progress = group.create_task(_report_progress(message))
        try:
            outcome = await self._process(message, delivery)
        except asyncio.CancelledError:
            await _give_back(message, None)
            raise
        finally:
            progress.cancel()
            self._running.remove(delivery.identity)
            deliveries.labels(stream, outcome).inc()
            work_seconds.labels(stream).observe(time.perf_counter() - started)

    async def _process(self, message: Msg, delivery: Delivery) -> str:
        """Process a message and report the outcome to the server; return it."""
        try:
            await self._work(delivery)
            await message.ack()
            self._failures.pop(delivery.identity, None)
            return "done"
        except Exception as error:  # noqa: BLE001 - the table of errors decides
            row = row_of(error)
            is_bug, log = row is ERRORS[Exception], getattr(_log, row.level)
            if isinstance(error, NotYetError):
                outcome = "waits"
                _log.debug("work_waits", subject=delivery.subject, why=error.message)
            elif row.retry is Retry.ENDLESS:
                outcome = "put_off"
                log("work_put_off", subject=delivery.subject, error=reason_of(error), attempt=delivery.attempt)
            else:
                outcome, failures = "crashed" if is_bug else "failed", self._count_failure(delivery)
                traceback = error if is_bug else None
                log("work_failed", subject=delivery.subject, error=reason_of(error), failures=failures, exc_info=traceback)
                if failures >= MAX_FAILURES and await self._end(message, delivery, error):
                    return "set_aside"
            await _give_back(message, _delay(delivery, error))
            return outcome

    def _count_failure(self, delivery: Delivery) -> int:
        if len(self._failures) >= _MAX_COUNTED:
            self._failures.clear()
        self._failures[delivery.identity] = failures = self._failures.get(delivery.identity, 0) + 1
        return failures

    async def _end(self, message: Msg, delivery: Delivery, error: Exception) -> bool:
        """Set a message aside and remove it from the queue; return whether both succeeded."""
        try:
            await self._set_aside(delivery, error)
            await message.term()
        except Exception as failure:  # noqa: BLE001 - the message returns to the queue
            _log.warning("not_set_aside", subject=delivery.subject, error=reason_of(failure))
            return False
        self._failures.pop(delivery.identity, None)
        return True


def _read_delivery(message: Msg) -> Delivery:
    metadata = message.metadata
    return Delivery(
        subject=message.subject,
        data=message.data,
        headers=message.headers or {},
        attempt=metadata.num_delivered or 1,
        identity=f"{metadata.stream}/{metadata.sequence.stream}/{metadata.timestamp.isoformat()}",
        stored_at=metadata.timestamp,
        seq=metadata.sequence.stream,
    )


def _delay(delivery: Delivery, error: Exception) -> timedelta:
    if isinstance(error, UnavailableError) and error.retry_after is not None:
        return error.retry_after
    return min(_RETRY_AFTER * (1 << min(delivery.attempt - 1, 10)), _MAX_RETRY_AFTER)


async def _report_progress(message: Msg) -> None:
    """Report periodically that the message is being processed."""
    while True:
        await asyncio.sleep(ACK_WAIT.total_seconds() / 3)
        with suppress(nats.errors.Error, OSError):
            await message.in_progress()


async def _give_back(message: Msg, delay: timedelta | None) -> None:
    with suppress(nats.errors.Error, OSError):  # the server delivers it again after `ACK_WAIT`
        await message.nak(delay=None if delay is None else delay.total_seconds())
