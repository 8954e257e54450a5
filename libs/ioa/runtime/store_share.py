"""The store rule: no new goals while the store is over 90 % full.

The last 10 % are reserved for goals that run, so that they end and their data can be removed.
"""

from __future__ import annotations

import asyncio
from datetime import timedelta

import structlog

from ioa.adapters.nats.streams.stream_stats import NatsStorage
from ioa.errors import StoreFullError, UnavailableError

FULL = 0.9
"""Used part of the store above which new goals are rejected."""
_MEASURE_SECONDS = 1.0
"""Interval between two measurements."""
_RETRY_AFTER = timedelta(seconds=10)

_log = structlog.get_logger(__name__)


class StoreShare:
    """Reject new goals while the store is full."""

    def __init__(self, store: NatsStorage) -> None:
        self._store = store
        self._is_full = False

    def check(self) -> None:
        """Check that the store accepts new goals.

        Raises:
            StoreFullError: The store is over 90 % full.
        """
        if self._is_full:
            why = f"The store is over {FULL:.0%} full and accepts no new goals."
            raise StoreFullError(why, hint="Remove old goals (`ioa goals prune`), or enlarge the store.", retry_after=_RETRY_AFTER)

    async def follow(self) -> None:
        """Close the stream of goals while the store is full, and open it again, until cancelled."""
        while True:
            try:
                await self.measure()
                await self._store.accept_goals(not self._is_full)
            except UnavailableError as error:
                _log.info("store_not_measured", error=error.message)
            await asyncio.sleep(_MEASURE_SECONDS)

    async def measure(self) -> None:
        """Measure the store.

        Raises:
            UnavailableError: JetStream does not answer; the last state stays.
        """
        used = await self._store.used()
        if (used > FULL) is not self._is_full:
            self._is_full = used > FULL
            _log.warning("store_full" if self._is_full else "store_has_space", used=round(used, 3))
