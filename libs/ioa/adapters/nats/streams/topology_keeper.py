"""Sees to it that the streams and buckets stay: a server may come back with an empty store, and somebody may delete a stream."""

from __future__ import annotations

import asyncio

import structlog
from nats.aio.client import Client

from ioa.adapters.nats.streams.stream_names import stream_names
from ioa.adapters.nats.streams.topology import STREAMS, Shares, Topology
from ioa.adapters.nats.wire.connection import announce_renewal
from ioa.adapters.nats.wire.translated_errors import unavailable_unless_answered
from ioa.cancellation import fail_after
from ioa.errors import UnavailableError
from ioa.retry import until_available

_RETRY_SECONDS = 0.5
_LOOK_EVERY_SECONDS = 2.0

_log = structlog.get_logger(__name__)


class TopologyKeeper:
    """Looks whether the streams and buckets are there, and makes them again if it has a topology to make."""

    def __init__(self, client: Client, topology: Topology | None) -> None:
        self._client = client
        self._topology = topology
        self._whole = False
        self.shares: Shares | None = None
        """Of the store, as they were when all was made last; None if there are none."""
        self._due = asyncio.Event()
        self._due.set()

    def is_whole(self) -> bool:
        """Whether JetStream answered and had everything when it was last asked."""
        return self._whole

    def look_at_once(self) -> None:
        """Trust nothing that was there before the connection was renewed."""
        self._whole = False
        self._due.set()

    async def make(self) -> None:
        """Make what is missing, as soon as JetStream answers: it may still be electing its leader."""
        topology = self._topology
        assert topology is not None

        async def ensure() -> None:
            with unavailable_unless_answered("JetStream"):
                self.shares = await topology.ensure(self._client.jetstream())

        await until_available(ensure, self._miss)
        self._whole = True

    def _miss(self, error: UnavailableError) -> None:
        self._whole = False
        _log.warning("waiting_for_jetstream", error=error.message)

    async def keep(self) -> None:
        """Ask JetStream what it has, now and then and after each renewal of the connection, and make what is missing, for ever."""
        while True:
            await self._pause()
            try:
                missing = set(STREAMS) - await stream_names(self._client)
            except UnavailableError as error:
                self._whole = False
                _log.warning("jetstream_out_of_reach", error=error.message)
                continue
            if self._topology is None:
                self._whole = not missing
            elif missing or not self._whole:
                await self.make()
            if missing and self._topology is not None:
                _log.warning("streams_made_again", missing=sorted(missing))
                announce_renewal(self._client)

    async def _pause(self) -> None:
        try:
            async with fail_after(_LOOK_EVERY_SECONDS if self._whole else _RETRY_SECONDS):
                await self._due.wait()
        except TimeoutError:
            return
        self._due.clear()
