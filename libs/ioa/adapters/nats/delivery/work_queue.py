"""Taking work off a shared durable consumer.

What cannot be done now comes back, later each time. What the system's being away has put off comes back without end, since nothing
that was accepted may be lost. What fails in any other way, five times in one process, is poison: it is set aside and leaves the
queue. The server's own count of deliveries is no measure, because it counts those that an outage has ended too; each process counts
what failed in itself, so that a message is tried at most five times in each.

A pull that was lost is not noticed by nats-py. One that was lost with its connection is asked again as soon as that is renewed, and
not before: each would take a message then, beyond what can be worked on. All of them are short, so that one that was lost inside a
cluster costs a few seconds and no more.
"""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
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
"""How often one process tries a message whose work fails otherwise than by the system's being away."""

_PULL = timedelta(seconds=5)
_RETRY_AFTER = timedelta(seconds=1)
_LONGEST_RETRY = timedelta(seconds=30)
_MAX_REMEMBERED = 10_000

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
    """A message that is this worker's until it is done.

    Attributes:
        headers: What was published beside the data.
        attempt: Counts deliveries from 1, those that an outage ended too.
        identity: Names the stored message; every delivery of it bears the same.
        seq: Its place in the stream.
        stored_at: When the server stored it, by the server's clock.
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
"""Keeps a message that cannot be worked on, with the error that says why. Raises if the message has to stay in the queue."""


def into_dead_letters(dead: DeadLetters, reason: DeadReason = DeadReason.UNDELIVERABLE) -> SetAside:
    """Set poison aside in the stream of dead letters, under a reason that its worker may write."""

    async def set_aside(delivery: Delivery, error: Exception) -> None:
        why = f"The work on it failed {MAX_FAILURES} times: {reason_of(error)}"
        await dead.put(reason, why, subject=delivery.subject, data=delivery.data, key=delivery.identity)

    return set_aside


async def consume(
    client: Client, stream: str, durable: str, work: Work, *, set_aside: SetAside, max_concurrent: int = 1, pulls: int = 1
) -> None:
    """Do `work` for each message, for ever; acknowledge it when `work` returns.

    A message whose work raises comes back after 1, 2, 4 and at most 30 s, to this worker or to another. If that was because
    something is out of reach, such as `UnavailableError` says, it does so without end, after `retry_after` if the error says that.
    Any other error counts, and the fifth one has the message set aside and taken off the queue. While work goes on the message
    stays with this worker. Cancelling gives unfinished messages back at once. So many messages are asked for at a time as there are
    `pulls`, each by itself: where most are done at once, the way to the server and back is what they wait for.
    """
    worker = _Worker(work, set_aside, asyncio.Semaphore(max_concurrent))
    slots = worker.slots

    async def pull(group: asyncio.TaskGroup) -> None:
        subscription = await client.jetstream().pull_subscribe_bind(durable, stream)
        try:
            while True:
                await slots.acquire()
                message = await _next(client, subscription.fetch)
                group.create_task(worker.do(group, message))
        finally:  # else it stands for as long as the connection, and is given what was asked for last
            with heeding_cancellation(), suppress(nats.errors.Error, OSError):
                await subscription.unsubscribe()

    async with TaskGroup() as group:
        for _ in range(pulls):
            group.create_task(pull(group))


async def _next(client: Client, fetch: Callable[..., Awaitable[list[Msg]]]) -> Msg:
    async def pull() -> list[Msg]:
        if await until_connected(client):
            return []  # whoever waits is told now that it was renewed, and asks
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
    """Does the work of messages, and remembers how often that of each has failed here."""

    def __init__(self, work: Work, set_aside: SetAside, slots: asyncio.Semaphore) -> None:
        self.slots = slots
        self._work = work
        self._set_aside = set_aside
        self._failures: OrderedDict[str, int] = OrderedDict()
        self._doing: set[str] = set()

    async def do(self, group: asyncio.TaskGroup, message: Msg) -> None:
        """Do one message's work, unless that is under way: whoever was given it before may have it given out again, at any time."""
        metadata = message.metadata
        identity = f"{metadata.stream}/{metadata.sequence.stream}/{metadata.timestamp.isoformat()}"
        if identity in self._doing:
            deliveries.labels(metadata.stream, "under_way").inc()
            self.slots.release()
            return
        self._doing.add(identity)
        try:
            await self._do(group, message, identity)
        finally:
            self._doing.remove(identity)

    async def _do(self, group: asyncio.TaskGroup, message: Msg, identity: str) -> None:
        """Do the work, and say what became of the message."""
        metadata = message.metadata
        delivery = Delivery(
            subject=message.subject,
            data=message.data,
            headers=message.headers or {},
            attempt=metadata.num_delivered or 1,
            identity=identity,
            seq=metadata.sequence.stream,
            stored_at=metadata.timestamp,
        )
        outcome, started = "done", time.perf_counter()
        if delivery.attempt > 1:
            redeliveries.labels(metadata.stream).inc()
        keeper = group.create_task(_keep(message))
        try:
            await self._work(delivery)
            await message.ack()
            self._failures.pop(identity, None)
        except asyncio.CancelledError:
            outcome = "given_back"
            await _give_back(message, None)
            raise
        except Exception as error:  # noqa: BLE001 - the table of errors says what becomes of the work
            if row_of(error).retry is Retry.ENDLESS:
                if isinstance(error, NotYetError):
                    outcome = "waits"
                    _log.debug("work_waits", subject=message.subject, why=error.message)
                else:
                    outcome = "put_off"
                    _tell("work_put_off", message, error, attempt=delivery.attempt)
                await _give_back(message, _delay(delivery, error))
            else:
                outcome = await self._fail(message, delivery, error)
        finally:
            deliveries.labels(metadata.stream, outcome).inc()
            work_seconds.labels(metadata.stream).observe(time.perf_counter() - started)
            keeper.cancel()
            self.slots.release()

    async def _fail(self, message: Msg, delivery: Delivery, error: Exception) -> str:
        """Give the message back, or set it aside if this was once too often; return what became of it."""
        failures = self._failures.pop(delivery.identity, 0) + 1
        self._failures[delivery.identity] = failures
        if len(self._failures) > _MAX_REMEMBERED:
            self._failures.popitem(last=False)
        _tell("work_failed", message, error, failures=failures)
        if failures >= MAX_FAILURES:
            try:
                await self._set_aside(delivery, error)
                await message.term()
                self._failures.pop(delivery.identity, None)
                return "set_aside"
            except Exception as failure:  # noqa: BLE001 - it is given back instead, and logged
                _log.warning("not_set_aside", subject=message.subject, error=reason_of(failure))
        await _give_back(message, _delay(delivery, error))
        return "crashed" if _is_bug(error) else "failed"


def _tell(event: str, message: Msg, error: Exception, **more: int) -> None:
    """Log what became of work at the level that its error has; with the traceback if nobody foresaw it."""
    tell = getattr(_log, row_of(error).level)
    tell(event, subject=message.subject, error=reason_of(error), exc_info=error if _is_bug(error) else None, **more)


def _is_bug(error: Exception) -> bool:
    """Whether nobody foresaw it: no row of the table is its own."""
    return row_of(error) is ERRORS[Exception]


def _delay(delivery: Delivery, error: Exception) -> timedelta:
    """How long a message is to stay away: as long as the error says, or longer each time."""
    if isinstance(error, UnavailableError) and error.retry_after is not None:
        return error.retry_after
    return min(_RETRY_AFTER * (1 << min(delivery.attempt - 1, 10)), _LONGEST_RETRY)


async def _keep(message: Msg) -> None:
    """Tell the server now and then that the message is still being worked on."""
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
