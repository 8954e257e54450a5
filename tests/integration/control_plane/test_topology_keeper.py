"""Streams that go missing are made again by whoever keeps them, and a process that lacks them is not ready."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path

import pytest
from nats.aio.client import Client

from ioa.adapters.nats.streams.stream import stream_names
from ioa.adapters.nats.streams.topology import LOG, STREAMS
from ioa.adapters.nats.wire.connection import NatsSettings, open_connection
from ioa.adapters.nats.wire.embedded_server import NatsServer
from ioa.adapters.nats.wire.subscriptions import at_renewal
from ioa.errors import UnavailableError
from ioa.runtime.control_plane import ControlPlaneSettings, open_topology
from ioa.telemetry import readiness
from tests.rig.deadline import eventually
from tests.rig.nats_server import crash


async def _missing(client: Client) -> set[str]:
    """The streams that are not there; all while JetStream does not answer."""
    try:
        return set(STREAMS) - await stream_names(client)
    except UnavailableError:
        return set(STREAMS)


async def test_a_stream_that_was_deleted_is_made_again(nats_url: str) -> None:
    """Nothing has to be restarted, and whoever follows streams is told to begin anew."""
    told = asyncio.Event()
    async with (
        open_connection(NatsSettings(nats_url, "test")) as client,
        open_topology(client, ControlPlaneSettings()),
    ):
        with at_renewal(client, told.set):
            await client.jetstream().delete_stream(LOG)
            await eventually(lambda: _missing(client), lambda missing: not missing)
            await asyncio.wait_for(told.wait(), 10)


@pytest.mark.slow
async def test_an_empty_store_is_filled_and_makes_unready_until_then(nats_server: NatsServer, tmp_path: Path) -> None:
    """A server with an empty store has every stream again; until then the process is not ready."""
    async with (
        open_connection(NatsSettings(nats_server.url, "maker")) as maker,
        open_topology(maker, ControlPlaneSettings()),
    ):
        await eventually(readiness.missing, lambda missing: not missing)
        await crash(nats_server)
        await eventually(readiness.missing, lambda missing: "JetStream" in missing)
        await asyncio.to_thread(shutil.rmtree, tmp_path / "nats" / "jetstream")
        await nats_server.start()
        await eventually(lambda: _missing(maker), lambda missing: not missing)
        await eventually(readiness.missing, lambda missing: not missing)
