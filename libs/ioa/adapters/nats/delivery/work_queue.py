"""Work queues: workers take messages from a shared durable consumer and acknowledge them when they are processed.

A message whose processing fails is delivered again after a growing delay: without limit if a dependency was unavailable, since
accepted messages must not be lost. After five other failures in a process the message is poison: it becomes a dead letter and
leaves the queue. The server's count of deliveries is not used, because it includes deliveries that an outage has ended.

nats-py does not notice a lost pull request. A pull request is sent again after a reconnect, and not before, because each request
that arrives takes a message. Pull requests expire after seconds, so a request lost inside a cluster delays messages briefly.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta

import nats.errors
import structlog
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.js.errors import APIError
from prometheus_client import Counter, Histogram

from ioa.adapters.nats.streams.topology import ACK_WAIT
from ioa.adapters.nats.wire.connection import until_connected
from ioa.adapters.nats.wire.renewal import until_renewal
from ioa.cancellation import TaskGroup, heeding_cancellation
from ioa.errors import ERRORS, NotYetError, Retry, UnavailableError, reason_of, row_of
from ioa.ports.delivery import DeadLetters
from ioa.protocol.dead_letters import DeadReason

MAX_FAILURES = 5
"""Failures of a message in a process after which it becomes a dead letter; unavailable dependencies do not count."""

_PULL = timedelta(seconds=5)
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
        seq: Sequence in the stream.
        stored_at: When the server stored the message, by the server's clock.
    """

    subject: str
    data: bytes
    headers: Mapping[str, str]
    attempt: int
    identity: str
    seq: int
    stored_at: datetime


Work = Callable[[Delivery], Awaitable[None]]
SetAside = Callable[[Delivery, Exception], Awaitable[None]]
"""Stores a message that cannot be processed, with the error. Raises if the message must stay in the queue."""


def into_dead_letters(dead: DeadLetters, reason: DeadReason = DeadReason.UNDELIVERABLE) -> SetAside:
    """Return a function that stores poison in the stream of dead letters."""

    async def set_aside(delivery: Delivery, error: Exception) -> None:
        why = f"The work on it failed {MAX_FAILURES} times: {reason_of(error)}"
        await dead.put(reason, why, subject=delivery.subject, data=delivery.data, key=delivery.identity)

    return set_aside


async def consume(
    client: Client, stream: str, durable: str, work: Work, *, set_aside: SetAside, max_concurrent: int = 1, pulls: int = 1
) -> None:
    """Process messages until cancelled; cancelling returns unfinished messages to the queue at once.

    Args:
        client: The connection.
        stream: The stream.
        durable: The consumer.
        work: Processes a message. If it raises, the message is delivered again after the error's `retry_after`, or after 1, 2, 4
            and at most 30 s; see the module.
        set_aside: Stores poison.
        max_concurrent: Maximum messages that are processed concurrently.
        pulls: Number of concurrent pull requests, for messages whose processing is shorter than a round trip.
    """
    worker, slots = _Worker(work, set_aside), asyncio.Semaphore(max_concurrent)

    async def process(group: asyncio.TaskGroup, message: Msg) -> None:
        try:
            await worker.process(group, message)
        finally:
            slots.release()

    async def pull(group: asyncio.TaskGroup) -> None:
        subscription = await client.jetstream().pull_subscribe_bind(durable, stream)
        try:
            while True:
                await slots.acquire()
                group.create_task(process(group, await _next(client, subscription.fetch)))
        finally:  # otherwise the server delivers to the last pull request
            with heeding_cancellation(), suppress(nats.errors.Error, OSError):
                await subscription.unsubscribe()

    async with TaskGroup() as group:
        for _ in range(pulls):
            group.create_task(pull(group))


async def _next(client: Client, fetch: Callable[..., Awaitable[list[Msg]]]) -> Msg:
    async def pull() -> list[Msg]:
        if await until_connected(client):
            return []  # the renewal ends this wait, and the next wait sends the request
        return await fetch(1, timeout=_PULL.total_seconds())

    while True:
        try:
            with until_renewal(client) as waits:
                for message in await waits.next(pull):
                    return message
        except (nats.errors.Error, APIError, OSError) as error:
            _log.warning("pull_failed", error=str(error) or type(error).__name__)
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
        metadata = message.metadata
        delivery = Delivery(
            subject=message.subject,
            data=message.data,
            headers=message.headers or {},
            attempt=metadata.num_delivered or 1,
            identity=f"{metadata.stream}/{metadata.sequence.stream}/{metadata.timestamp.isoformat()}",
            seq=metadata.sequence.stream,
            stored_at=metadata.timestamp,
        )
        if delivery.identity in self._running:
            deliveries.labels(metadata.stream, "under_way").inc()
            return
        self._running.add(delivery.identity)
        if delivery.attempt > 1:
            redeliveries.labels(metadata.stream).inc()
        outcome, started = "given_back", time.perf_counter()
        keeper = group.create_task(_keep(message))
        try:
            outcome = await self._process(message, delivery)
        except asyncio.CancelledError:
            await _give_back(message, None)
            raise
        finally:
            self._running.remove(delivery.identity)
            deliveries.labels(metadata.stream, outcome).inc()
            work_seconds.labels(metadata.stream).observe(time.perf_counter() - started)
            keeper.cancel()

    async def _process(self, message: Msg, delivery: Delivery) -> str:
        """Process a message and report the outcome to the server; return it."""
        try:
            await self._work(delivery)
            await message.ack()
        except Exception as error:  # noqa: BLE001 - the table of errors decides
            if row_of(error).retry is not Retry.ENDLESS:
                return await self._fail(message, delivery, error)
            await _give_back(message, _delay(delivery, error))
            if isinstance(error, NotYetError):
                _log.debug("work_waits", subject=message.subject, why=error.message)
                return "waits"
            _log_error("work_put_off", message, error, attempt=delivery.attempt)
            return "put_off"
        self._failures.pop(delivery.identity, None)
        return "done"

    async def _fail(self, message: Msg, delivery: Delivery, error: Exception) -> str:
        """Return a message to the queue, or set it aside after too many failures; return the outcome."""
        if len(self._failures) >= _MAX_COUNTED:
            self._failures.clear()
        failures = self._failures[delivery.identity] = self._failures.get(delivery.identity, 0) + 1
        _log_error("work_failed", message, error, failures=failures)
        if failures >= MAX_FAILURES:
            try:
                await self._set_aside(delivery, error)
                await message.term()
                self._failures.pop(delivery.identity, None)
                return "set_aside"
            except Exception as failure:  # noqa: BLE001 - the message returns to the queue
                _log.warning("not_set_aside", subject=message.subject, error=reason_of(failure))
        await _give_back(message, _delay(delivery, error))
        return "crashed" if _is_bug(error) else "failed"


def _log_error(event: str, message: Msg, error: Exception, **more: int) -> None:
    """Log an error at the level of its row; with the traceback if it has no row of its own."""
    log = getattr(_log, row_of(error).level)
    log(event, subject=message.subject, error=reason_of(error), exc_info=error if _is_bug(error) else None, **more)


def _is_bug(error: Exception) -> bool:
    return row_of(error) is ERRORS[Exception]


def _delay(delivery: Delivery, error: Exception) -> timedelta:
    if isinstance(error, UnavailableError) and error.retry_after is not None:
        return error.retry_after
    return min(_RETRY_AFTER * (1 << min(delivery.attempt - 1, 10)), _MAX_RETRY_AFTER)


async def _keep(message: Msg) -> None:
    """Report periodically that the message is being processed."""
    while True:
        await asyncio.sleep(ACK_WAIT.total_seconds() / 3)
        try:
            await message.in_progress()
        except (nats.errors.Error, OSError) as error:
            _log.debug("not_kept", error=str(error) or type(error).__name__)


async def _give_back(message: Msg, delay: timedelta | None) -> None:
    try:
        await message.nak(delay=None if delay is None else delay.total_seconds())
    except (nats.errors.Error, OSError) as error:
        _log.debug("not_given_back", error=str(error) or type(error).__name__)
