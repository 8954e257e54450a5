"""Fixtures of the contract suites."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import pytest
from nats.aio.client import Client
from structlog.testing import capture_logs

from ioa.adapters.nats.streams.topology import Topology
from ioa.adapters.nats.wire.connection import NatsSettings, open_connection


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    """Capture logs: to draw them in colour would block the event loop for too long."""
    with capture_logs():
        yield


@pytest.fixture
async def client(nats_url: str) -> AsyncIterator[Client]:
    """A connection to a server with all streams and buckets."""
    async with open_connection(NatsSettings(nats_url, "contract")) as connection:
        await Topology().ensure(connection.jetstream())
        yield connection
