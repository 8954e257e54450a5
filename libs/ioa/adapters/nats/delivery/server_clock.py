"""The system's wall clock: nats-server's clock, which timers use too.

With a clock of its own, a service whose machine runs an hour ahead would reject messages as late and end new goals.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial

import structlog
from nats.aio.client import Client

from ioa.adapters.nats.streams.stream import Stream
from ioa.adapters.nats.streams.topology import LOG
from ioa.adapters.nats.wire.subscriptions import at_renewal
from ioa.concurrency import fail_after
from ioa.errors import UnavailableError
from ioa.retry import until_available

_READ_EVERY_SECONDS = 10.0
_MAX_ROUND_TRIP_SECONDS = 0.5
"""Time within which a reply must arrive to correct an earlier reading."""

_log = structlog.get_logger(__name__)

_since_boot: Callable[[], float] = (
    partial(time.clock_gettime, time.CLOCK_BOOTTIME) if hasattr(time, "CLOCK_BOOTTIME") else time.monotonic
)
"""Seconds of a clock that cannot be set; on Linux they include the time during which the machine slept."""


class NatsClock:
    """Reads nats-server's clock periodically, and between the readings adds elapsed time. Made by `open_nats_clock`."""

    def __init__(self, client: Client, elapsed: Callable[[], float] = _since_boot) -> None:
        self._client = client
        self._elapsed = elapsed
        self._zero: float | None = None
        """The server's time, in seconds since 1970, at which the elapsed time was 0."""

    def now(self) -> datetime:
        """Return the present time, in UTC."""
        assert self._zero is not None, "the server's clock was not read yet"
        return datetime.fromtimestamp(self._zero + self._elapsed(), UTC)

    async def read(self) -> None:
        """Read the server's clock once. A slow reply is too inaccurate to correct an earlier reading."""
        sent = self._elapsed()
        server_time = (await Stream(self._client, LOG).info())["ts"]
        received = self._elapsed()
        if self._zero is None or received - sent <= _MAX_ROUND_TRIP_SECONDS:
            self._zero = datetime.fromisoformat(server_time).timestamp() - (sent + received) / 2

    async def follow(self) -> None:
        """Read the server's clock periodically and after each reconnect, until cancelled."""
        renewed = asyncio.Event()
        with at_renewal(self._client, renewed.set):
            while True:
                with suppress(TimeoutError):
                    async with fail_after(_READ_EVERY_SECONDS):
                        await renewed.wait()
                renewed.clear()
                with suppress(UnavailableError):
                    await self.read()


async def open_nats_clock(client: Client) -> NatsClock:
    """Return a clock once the server's clock was read. The caller must run its `follow`."""
    clock = NatsClock(client)
    await until_available(clock.read, lambda error: _log.warning("waiting_for_jetstream", error=error.message))
    return clock
