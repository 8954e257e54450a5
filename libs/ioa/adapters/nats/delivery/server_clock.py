"""The wall clock that a whole system shares: nats-server's.

Timers come back by it. A service that stamped what happens by a clock of its own, an hour ahead or behind, would refuse messages as
too late, or end goals that have just begun.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial

import structlog
from nats.aio.client import Client

from ioa.adapters.nats.streams.topology import LOG
from ioa.adapters.nats.wire.connection import at_renewal
from ioa.adapters.nats.wire.translated_errors import unavailable_unless_answered
from ioa.cancellation import fail_after
from ioa.errors import UnavailableError
from ioa.retry import until_available

_LOOK_EVERY_SECONDS = 10.0
_ANSWER_SECONDS = 2.0
_QUICK_SECONDS = 0.5
_TOLERATED_SECONDS = 0.1
_WORTH_A_WARNING_SECONDS = 2.0
_SERVER_TIME = "ts"

_log = structlog.get_logger(__name__)


_since_boot: Callable[[], float] = (
    partial(time.clock_gettime, time.CLOCK_BOOTTIME) if hasattr(time, "CLOCK_BOOTTIME") else time.monotonic
)
"""Seconds that nobody can set, those in which the machine slept included where the system counts them."""


class NatsClock:
    """Read nats-server's clock now and then, and count on by what this machine's clock cannot be set. Made by `open_nats_clock`."""

    def __init__(self, client: Client, elapsed: Callable[[], float] = _since_boot) -> None:
        self._client = client
        self._elapsed = elapsed
        self._zero: float | None = None
        """The server's time, in seconds since 1970, at which nothing had elapsed."""

    def now(self) -> datetime:
        """Return the present instant, in UTC."""
        assert self._zero is not None, "the server's clock was not read yet"
        return datetime.fromtimestamp(self._zero + self._elapsed(), UTC)

    async def read(self) -> None:
        """Read the server's clock once. An answer that took long tells too little to correct what is known.

        Raises:
            UnavailableError: JetStream does not answer.
        """
        asked = self._elapsed()
        with unavailable_unless_answered("JetStream"):
            answer = await self._client.request(f"$JS.API.STREAM.INFO.{LOG}", timeout=_ANSWER_SECONDS)
        answered = self._elapsed()
        said = json.loads(answer.data).get(_SERVER_TIME)
        if said is None:
            raise UnavailableError("JetStream does not tell the time: the stream of group logs is missing.")
        zero = datetime.fromisoformat(said).timestamp() - (asked + answered) / 2
        off = 0.0 if self._zero is None else zero - self._zero
        if self._zero is None or (answered - asked <= _QUICK_SECONDS and abs(off) > _TOLERATED_SECONDS):
            if abs(off) > _WORTH_A_WARNING_SECONDS:
                _log.warning("clock_corrected", by_seconds=off)
            self._zero = zero

    async def follow(self) -> None:
        """Keep in step with the server, across outages: now and then, and at once when the connection was renewed."""
        renewed = asyncio.Event()
        with at_renewal(self._client, renewed.set):
            while True:
                with suppress(TimeoutError):
                    async with fail_after(_LOOK_EVERY_SECONDS):
                        await renewed.wait()
                renewed.clear()
                try:
                    await self.read()
                except UnavailableError as error:
                    _log.debug("clock_not_read", error=error.message)


async def open_nats_clock(client: Client) -> NatsClock:
    """Read the server's clock, waiting as long as it takes. Its `follow` has to run from then on."""
    clock = NatsClock(client)
    await until_available(clock.read, lambda error: _log.warning("waiting_for_jetstream", error=error.message))
    return clock
