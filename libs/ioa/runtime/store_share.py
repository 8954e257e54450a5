"""The store rule: no new goals while the store is over 90 % full.

The last 10 % are reserved for goals that run, so that they end and their data can be removed.
"""

from __future__ import annotations

import asyncio
from datetime import timedelta

import structlog

from ioa.adapters.nats.streams.stream import Stream, ask_jetstream
from ioa.adapters.nats.streams.topology import GOALS, LOG, Shares
from ioa.adapters.nats.wire.connection import Connection
from ioa.adapters.nats.wire.translated_errors import unavailable_unless_answered
from ioa.errors import StoreFullError, UnavailableError

FULL = 0.9
"""Used part of the store above which new goals are rejected."""
_MEASURE_SECONDS = 1.0
"""Interval between two measurements."""
_RETRY_AFTER = timedelta(seconds=10)
_CLOSED_BYTES = 1
"""`max_bytes` of the stream of goals while it accepts none: JetStream stores no message of this size."""

_log = structlog.get_logger(__name__)


class StoreShare:
    """Reject new goals while the store is full.

    Args:
        client: The connection, whose account has the store.
        shares: Maximum bytes of the store and its streams; None: the store is never full.
        replicas: Number of copies of each stream.
    """

    def __init__(self, client: Connection, shares: Shares | None, replicas: int) -> None:
        self._client = client
        self._shares = shares
        self._replicas = replicas
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
                await self.accept_goals(not self._is_full)
            except UnavailableError as error:
                _log.info("store_not_measured", error=error.message)
            await asyncio.sleep(_MEASURE_SECONDS)

    async def measure(self) -> None:
        """Measure the store.

        Raises:
            UnavailableError: JetStream does not answer; the last state stays.
        """
        used = await self.used()
        if (used > FULL) is not self._is_full:
            self._is_full = used > FULL
            _log.warning("store_full" if self._is_full else "store_has_space", used=round(used, 3))

    async def used(self) -> float:
        """Return the used part of the account or of the log's share, whichever is larger."""
        if self._shares is None:
            return 0.0
        stored = (await ask_jetstream(self._client, "INFO"))["storage"] / self._replicas
        logs = (await Stream(self._client, LOG).info())["state"]["bytes"]
        return float(max(stored / self._shares.store, logs / self._shares.by_stream()[LOG]))

    async def accept_goals(self, accept: bool) -> None:
        """Set `max_bytes` of the stream of goals."""
        if self._shares is None:
            return
        max_bytes, js = self._shares.by_stream()[GOALS] if accept else _CLOSED_BYTES, self._client.jetstream()
        with unavailable_unless_answered("The stream of goals"):
            config = (await js.stream_info(GOALS)).config
            if config.max_bytes != max_bytes:
                await js.update_stream(config.evolve(max_bytes=max_bytes))
