"""A connection to an account of the shared nats-server, with all streams and buckets."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import timedelta

import pytest
from nats.aio.client import Client

from ioa.adapters.nats.connection import NatsSettings, open_connection
from ioa.adapters.nats.queues import Delivery
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


@pytest.fixture
async def client(nats_url: str) -> AsyncIterator[Client]:
    """A connection to a server with all streams and buckets."""
    async with open_connection(NatsSettings(nats_url, "contract")) as connection:
        await Topology().ensure(connection.jetstream())
        yield connection
