"""Taking work off a shared durable consumer.

A pull that was lost is not noticed by nats-py. One that was lost with its connection is asked again as soon as that is renewed; all
of them are short, so that one that was lost inside a cluster costs a few seconds and no more.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial

import nats.errors
import structlog
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.js.errors import APIError
from prometheus_client import Counter, Histogram

from ioa.adapters.nats_renewal import until_renewal
from ioa.adapters.nats_topology import ACK_WAIT
from ioa.errors import IoaError

_PULL = timedelta(seconds=5)
_RETRY_AFTER = timedelta(seconds=1)

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
        attempt: Counts deliveries from 1.
        identity: Names the stored message; every delivery of it bears the same.
        stored_at: When the server stored it, by the server's clock.
    """

    subject: str
    data: bytes
    attempt: int
    identity: str
    stored_at: datetime


Work = Callable[[Delivery], Awaitable[None]]


async def consume(client: Client, stream: str, durable: str, work: Work, *, side_by_side: int = 1) -> None:
    """Do `work` for each message, for ever; acknowledge it when `work` returns.

    A message whose work raises a retryable error comes back after a second, to this worker or to another; with any other error
    too, since nothing may be lost. While work goes on the message stays with this worker. Cancelling gives unfinished messages
    back at once.
    """
    slots = asyncio.Semaphore(side_by_side)
    async with asyncio.TaskGroup() as group:
        subscription = await client.jetstream().pull_subscribe_bind(durable, stream)
        while True:
            await slots.acquire()
            message = await _next(client, subscription.fetch)
            group.create_task(_do(group, message, work, slots))


async def _next(client: Client, fetch: Callable[..., Awaitable[list[Msg]]]) -> Msg:
    pull = partial(fetch, 1, timeout=_PULL.total_seconds())
    while True:
        try:
            with until_renewal(client) as waits:
                for message in await waits.next(pull):
                    return message
        except (nats.errors.Error, APIError, OSError) as error:
            _log.warning("pull_failed", error=str(error) or type(error).__name__)
            await asyncio.sleep(_RETRY_AFTER.total_seconds())


async def _do(group: asyncio.TaskGroup, message: Msg, work: Work, slots: asyncio.Semaphore) -> None:
    metadata = message.metadata
    identity = f"{metadata.stream}/{metadata.sequence.stream}/{metadata.timestamp.isoformat()}"
    delivery = Delivery(message.subject, message.data, metadata.num_delivered or 1, identity, metadata.timestamp)
    outcome, started = "done", time.perf_counter()
    if delivery.attempt > 1:
        redeliveries.labels(metadata.stream).inc()
    keeper = group.create_task(_keep(message))
    try:
        await work(delivery)
        await message.ack()
    except asyncio.CancelledError:
        outcome = "given_back"
        await _give_back(message, None)
        raise
    except (IoaError, nats.errors.Error, OSError) as error:
        outcome = "put_off"
        _log.warning("work_put_off", subject=message.subject, error=str(error) or type(error).__name__)
        await _give_back(message, _RETRY_AFTER)
    except Exception:
        outcome = "crashed"
        _log.exception("work_crashed", subject=message.subject)
        await _give_back(message, _RETRY_AFTER)
    finally:
        deliveries.labels(metadata.stream, outcome).inc()
        work_seconds.labels(metadata.stream).observe(time.perf_counter() - started)
        keeper.cancel()
        slots.release()


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
