"""A control plane for tests: the services on a real nats-server, in the test's own event loop."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from ioa.adapters.nats.inspection import NatsInspection
from ioa.adapters.nats.nats_agent_network import NatsAgentNetwork
from ioa.adapters.nats.streams.topology import Topology
from ioa.adapters.nats.wire.connection import NatsSettings, open_connection
from ioa.adapters.nats.wire.embedded_server import open_nats_server
from ioa.client.client import Client
from ioa.concurrency import beside, fail_after, heeding_cancellation
from ioa.errors import UnavailableError
from ioa.local.services import is_ready
from ioa.ports.agent_network import AgentNetwork
from ioa.runtime.control_plane import ControlPlaneSettings
from ioa.runtime.process import StopSignal
from ioa_discovery.answering import open_answering
from ioa_groups.__main__ import serve as serve_groups
from ioa_registry.__main__ import serve as serve_registry
from ioa_router.__main__ import serve as serve_router
from ioa_testkit.word_engines import open_word_engines

RENEW_EVERY = timedelta(milliseconds=200)
"""Lease renewal interval. Short, because a renewal shows an agent the groups whose first push it missed."""

_LEASE = timedelta(seconds=30)
"""Lease of an agent, and of a task."""
_FLOOR_TIMEOUT = timedelta(seconds=60)
_MODEL_PATIENCE = timedelta(seconds=2)
_START_PATIENCE = timedelta(seconds=20)
_POLL_SECONDS = 0.01


@dataclass(frozen=True)
class Plane:
    """A running control plane, as users, agents and `ioa doctor` see it, and the URL of its NATS."""

    client: Client
    network: AgentNetwork
    inspection: NatsInspection
    url: str


@asynccontextmanager
async def open_nats_plane(folder: Path, **timeouts: timedelta) -> AsyncIterator[Plane]:
    """Run nats-server on a folder and the services on it; `timeouts` are passed to `open_plane`.

    Raises:
        MissingExtraError: nats-server is not installed.
        UnavailableError: A part did not start.
    """
    async with open_nats_server(folder, None) as server, open_plane(server.url, **timeouts) as plane:
        yield plane


@asynccontextmanager
async def open_plane(
    url: str, *, model_patience: timedelta = _MODEL_PATIENCE, floor_timeout: timedelta = _FLOOR_TIMEOUT
) -> AsyncIterator[Plane]:
    """Run the services on a nats-server while the block runs, and yield when all of them answer.

    Discovery compares words, without a model.

    Args:
        url: A nats-server, or an account of it, with an empty JetStream.
        model_patience: How long a group waits for models that do not answer.
        floor_timeout: How long a member may hold the floor without speaking.

    Raises:
        UnavailableError: A service did not start.
    """
    async with AsyncExitStack() as stack:
        connecting = open_connection(NatsSettings(url, "ioa-testkit"), patience=_START_PATIENCE)
        with heeding_cancellation():  # nats-py drops a cancellation now and then
            connection = await stack.enter_async_context(connecting)
            await Topology().ensure(connection.jetstream())  # before a service reports that streams are missing
        settings = ControlPlaneSettings(
            nats_url=url,
            lease=_LEASE,
            renew_every=RENEW_EVERY,
            floor_timeout=floor_timeout,
            task_lease=_LEASE,
            model_patience=model_patience,
        )
        stop, services = StopSignal(), (serve_registry, serve_groups, serve_router, serve_discovery)
        await stack.enter_async_context(beside(*(serve(settings, stop) for serve in services), stop=stop.set))
        inspection = NatsInspection(connection)
        with heeding_cancellation():
            await until_ready(inspection, 0, _START_PATIENCE)
        yield Plane(Client(connection), NatsAgentNetwork(connection), inspection, url)


async def serve_discovery(settings: ControlPlaneSettings, stop: StopSignal) -> None:
    """Answer searches until `stop` is set."""
    async with (
        open_connection(settings.nats("ioa-discovery")) as client,
        open_answering(client, settings, open_word_engines),
    ):
        await stop.wait()


async def until_ready(inspection: NatsInspection, agents: int, within: timedelta) -> None:
    """Wait until all services answer, and this number of agents is online and indexed.

    Raises:
        UnavailableError: It takes too long.
    """
    try:
        async with fail_after(within.total_seconds()):
            while not await is_ready(inspection, agents):  # noqa: ASYNC110 - there is no event
                await asyncio.sleep(_POLL_SECONDS)
    except TimeoutError:
        raise UnavailableError(
            f"The system of the test with {agents} agents is not ready after {within.total_seconds():g} s.", hint="Read its log."
        ) from None
