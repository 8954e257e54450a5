"""What the control plane's services share: their settings, and the streams and buckets they make sure of."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta

import structlog
from nats.aio.client import Client
from pydantic import Field

from ioa.adapters.nats.connection import announce_renewal, at_renewal
from ioa.adapters.nats.failures import unavailable_unless_answered
from ioa.adapters.nats.streams import stream_names
from ioa.adapters.nats.topology import STREAMS, Topology
from ioa.errors import UnavailableError
from ioa.runtime.process import ProcessSettings, background
from ioa.telemetry import readiness

_RETRY_SECONDS = 0.5
_LOOK_EVERY_SECONDS = 2.0

_log = structlog.get_logger(__name__)


class ControlPlaneSettings(ProcessSettings):
    """What registry, discovery, group setup and router are told."""

    replicas: int = Field(default=1, ge=1, le=5, description="copies of every stream and bucket")
    lease: timedelta = Field(default=timedelta(seconds=10), gt=timedelta(0), description="how long an agent's lease lasts")
    renew_every: timedelta = Field(default=timedelta(seconds=3), gt=timedelta(0), description="how often an agent renews its lease")
    floor_timeout: timedelta = Field(
        default=timedelta(seconds=60), gt=timedelta(0), description="how long a member may have the floor without speaking"
    )
    task_lease: timedelta = Field(
        default=timedelta(seconds=30), gt=timedelta(0), description="how long a task may go without a report before it is suspect"
    )
    pause_timeout: timedelta = Field(
        default=timedelta(minutes=10), gt=timedelta(0), description="how long a pause may last while tasks run"
    )
    conclusion_timeout: timedelta = Field(
        default=timedelta(seconds=60), gt=timedelta(0), description="how long the member that has to conclude may be silent"
    )
    max_depth: int = Field(default=3, ge=0, le=20, description="how deep teams may nest")
    keep: timedelta = Field(default=timedelta(days=30), gt=timedelta(0), description="how long a goal is kept after its end")
    keep_agents: timedelta = Field(
        default=timedelta(days=90), gt=timedelta(0), description="how long an agent is kept that does not come back"
    )


@asynccontextmanager
async def open_topology(client: Client, settings: ControlPlaneSettings, *, make: bool = True) -> AsyncIterator[None]:
    """Make the streams and buckets, waiting for JetStream as long as it takes, and see to it that they stay while the block runs.

    A server may come back with an empty store, and somebody may delete a stream by hand. The process is ready only while JetStream
    answers and has them all. A service that may not make any only looks (`make` is False), and does not wait for them.
    """
    topology = Topology(replicas=settings.replicas, keep=settings.keep) if make else None
    keeper = TopologyKeeper(client, topology)
    with readiness.needs("JetStream", keeper.is_whole), at_renewal(client, keeper.look_at_once):
        if make:
            await keeper.make()
        async with background(keeper.keep()):
            yield


class TopologyKeeper:
    """Looks whether the streams and buckets are there, and makes them again if it has a topology to make."""

    def __init__(self, client: Client, topology: Topology | None) -> None:
        self._client = client
        self._topology = topology
        self._whole = False
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
        assert self._topology is not None
        while True:
            try:
                with unavailable_unless_answered("JetStream"):
                    await self._topology.ensure(self._client.jetstream())
                self._whole = True
                return
            except UnavailableError as error:
                self._whole = False
                _log.warning("waiting_for_jetstream", error=error.message)
                await asyncio.sleep(_RETRY_SECONDS)

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
            async with asyncio.timeout(_LOOK_EVERY_SECONDS if self._whole else _RETRY_SECONDS):
                await self._due.wait()
        except TimeoutError:
            return
        self._due.clear()
