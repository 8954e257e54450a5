"""Each contract runs on the shipped fake and on a real nats-server of the test's own."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import timedelta

import pytest
from nats.aio.client import Client

from ioa.adapters.nats.connection import NatsSettings, open_connection
from ioa.adapters.nats.queues import Delivery
from ioa.adapters.nats.server import NatsServer
from ioa.adapters.nats.topology import Topology

LEASE = timedelta(seconds=1)


async def heard(client: Client) -> None:
    """Return once the server has taken all that was sent, subscriptions too.

    `Client.flush` is no such barrier: nats-py lets its ping overtake what is buffered. A request keeps its place.
    """
    await client.jetstream().account_info()


async def nothing_is_poison(delivery: Delivery, error: Exception) -> None:
    """For workers whose work must not fail."""
    raise AssertionError(f"{delivery.subject} was to be set aside") from error


@pytest.fixture(params=["memory", "nats"])
def server(request: pytest.FixtureRequest) -> NatsServer | None:
    """The nats-server of a test; None when it runs on the fake."""
    if request.param == "memory":
        return None
    found: NatsServer = request.getfixturevalue("nats_server")
    return found


@pytest.fixture
async def client(server: NatsServer | None) -> AsyncIterator[Client | None]:
    """A connection to a server with all streams and buckets; None when the test runs on the fake."""
    if server is None:
        yield None
        return
    async with open_connection(NatsSettings(server.url, "contract")) as connection:
        await Topology().ensure(connection.jetstream())
        yield connection


@pytest.fixture
async def nats_client(nats_server: NatsServer) -> AsyncIterator[Client]:
    """A connection for what only NATS has."""
    async with open_connection(NatsSettings(nats_server.url, "contract")) as connection:
        await Topology().ensure(connection.jetstream())
        yield connection
