"""A whole control plane for tests, in memory or on a real nats-server, started in the test's own event loop."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from ioa.adapters.nats.agent_network import NatsAgentNetwork
from ioa.adapters.nats.connection import NatsSettings, open_connection
from ioa.adapters.nats.inspection import NatsInspection
from ioa.adapters.nats.server import open_nats_server
from ioa.adapters.nats.topology import Topology
from ioa.adapters.system_clock import SystemClock
from ioa.beside import beside
from ioa.cancellation import fail_after, heeding_cancellation
from ioa.errors import UnavailableError
from ioa.ports.agent_network import AgentNetwork
from ioa.ports.inspection import Inspection
from ioa.ports.system_client import SystemClient
from ioa.runtime.control_plane import ControlPlaneSettings, open_topology
from ioa.runtime.process import StopSignal
from ioa_discovery.answering import open_answering
from ioa_discovery.terms import whole_word
from ioa_groups.__main__ import serve as serve_groups
from ioa_registry.__main__ import serve as serve_registry
from ioa_router.__main__ import serve as serve_router
from ioa_testkit.memory_discovery import MemoryEngines
from ioa_testkit.memory_inspection import MemoryInspection
from ioa_testkit.memory_plane import MemoryControlPlane
from ioa_testkit.memory_system_client import MemorySystemClient
from ioa_testkit.plane_network import PlaneNetwork

RENEW_EVERY = timedelta(milliseconds=200)
"""Short, since a renewal is what tells an agent of a group whose first push it has missed."""

_TASK_LEASE = timedelta(seconds=30)
_LEASE = timedelta(seconds=30)
_FLOOR_TIMEOUT = timedelta(seconds=60)
_MODEL_PATIENCE = timedelta(seconds=2)
_START_PATIENCE = timedelta(seconds=20)
_POLL_SECONDS = 0.01
_SERVICES = ("ioa-registry", "ioa-groups", "ioa-router", "ioa-discovery")


@dataclass(frozen=True)
class Plane:
    """A control plane that runs: what users ask, what agents ask, and what a doctor looks at.

    `url` is where its NATS is; None in memory.
    """

    client: SystemClient
    network: AgentNetwork
    inspection: Inspection
    url: str | None = None


@asynccontextmanager
async def open_memory_plane() -> AsyncIterator[Plane]:
    """Run the services over stores in memory, for as long as the block."""
    plane = MemoryControlPlane(SystemClock(), renew_every=RENEW_EVERY, task_lease=_TASK_LEASE, model_patience=_MODEL_PATIENCE)
    async with beside(plane.keep()):
        client = MemorySystemClient(plane)
        yield Plane(client, PlaneNetwork(plane), MemoryInspection(plane, client))


@asynccontextmanager
async def open_nats_plane(
    folder: Path, *, model_patience: timedelta = _MODEL_PATIENCE, floor_timeout: timedelta = _FLOOR_TIMEOUT
) -> AsyncIterator[Plane]:
    """Run nats-server on a folder and the services beside the block, and yield when all of them answer.

    `model_patience` and `floor_timeout` are those of its groups. Discovery has no engine: it is the in-memory one, over the
    server's registry.

    Raises:
        MissingExtraError: nats-server is not installed.
        UnavailableError: A part did not start.
    """
    async with AsyncExitStack() as stack:
        server = await stack.enter_async_context(open_nats_server(folder, None))
        connecting = open_connection(NatsSettings(server.url, "ioa-testkit"), patience=_START_PATIENCE)
        with heeding_cancellation():  # a test may be stopped at any moment, and nats-py drops that now and then
            connection = await stack.enter_async_context(connecting)
            await Topology().ensure(connection.jetstream())  # before anybody looks, and says in the log that nothing is there yet
        settings = ControlPlaneSettings(
            nats_url=server.url,
            lease=_LEASE,
            renew_every=RENEW_EVERY,
            floor_timeout=floor_timeout,
            task_lease=_TASK_LEASE,
            model_patience=model_patience,
        )
        stop, services = StopSignal(), (serve_registry, serve_groups, serve_router, serve_discovery)
        await stack.enter_async_context(beside(*(serve(settings, stop) for serve in services), stop=stop.set))
        inspection = NatsInspection(connection)
        with heeding_cancellation():
            await _until_answered(inspection)
        yield Plane(inspection.system, NatsAgentNetwork(connection), inspection, server.url)


async def serve_discovery(settings: ControlPlaneSettings, stop: StopSignal) -> None:
    """Answer searches without an engine or a model until `stop` is set."""

    @asynccontextmanager
    async def engines() -> AsyncIterator[MemoryEngines]:
        yield MemoryEngines()

    async with (
        open_connection(settings.nats("ioa-discovery")) as client,
        open_topology(client, settings, make=False),
        open_answering(client, settings, engines, whole_word),
    ):
        await stop.wait()


async def _until_answered(inspection: NatsInspection) -> None:
    try:
        async with fail_after(_START_PATIENCE.total_seconds()):
            silent = [*_SERVICES]
            while silent := [service for service in silent if not await inspection.answers(service)]:  # noqa: ASYNC110  # nobody tells
                await asyncio.sleep(_POLL_SECONDS)
    except TimeoutError:
        raise UnavailableError(
            f"The services of the test did not start within {_START_PATIENCE.total_seconds():.0f} s.",
            hint="Their logs say why.",
        ) from None
