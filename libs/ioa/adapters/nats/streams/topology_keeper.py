"""Keep the streams: a server may restart with an empty store, and an operator may delete a stream."""

from __future__ import annotations

import asyncio
from contextlib import suppress

import structlog
from nats.aio.client import Client

from ioa.adapters.nats.streams.stream import stream_names
from ioa.adapters.nats.streams.topology import STREAMS, Shares, Topology
from ioa.adapters.nats.wire.subscriptions import announce_renewal
from ioa.adapters.nats.wire.translated_errors import unavailable_unless_answered
from ioa.concurrency import fail_after
from ioa.errors import UnavailableError
from ioa.retry import until_available

_RETRY_SECONDS, _LOOK_EVERY_SECONDS = 0.5, 2.0

_log = structlog.get_logger(__name__)


class TopologyKeeper:
    """Checks whether all streams exist, and creates missing ones."""

    def __init__(self, client: Client, topology: Topology) -> None:
        self._client = client
        self._topology = topology
        self._is_complete = False
        self._due = asyncio.Event()
        self.shares: Shares | None = None
        """Shares of the store when all streams were created; None if there are none."""

    def is_complete(self) -> bool:
        """Whether JetStream answered the last check and had all streams."""
        return self._is_complete

    def check_soon(self) -> None:
        """Check after a reconnect: the server may have another store."""
        self._is_complete = False
        self._due.set()

    async def create(self) -> None:
        """Create missing streams as soon as JetStream answers: it may still elect its leader."""

        async def ensure() -> None:
            with unavailable_unless_answered("JetStream"):
                self.shares = await self._topology.ensure(self._client.jetstream())

        self._is_complete = False
        await until_available(ensure, lambda error: _log.warning("waiting_for_jetstream", error=error.message))
        self._is_complete = True

    async def follow(self) -> None:
        """Check periodically and after each reconnect, and create missing streams, until cancelled."""
        while True:
            try:
                missing = {*STREAMS} - await stream_names(self._client)
            except UnavailableError as error:
                self._is_complete = False
                _log.warning("jetstream_out_of_reach", error=error.message)
            else:
                if missing or not self._is_complete:
                    await self.create()
                    if missing:
                        _log.warning("streams_made_again", missing=sorted(missing))
                        announce_renewal(self._client)
            with suppress(TimeoutError):
                async with fail_after(_LOOK_EVERY_SECONDS if self._is_complete else _RETRY_SECONDS):
                    await self._due.wait()
            self._due.clear()
