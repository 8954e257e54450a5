"""The service of read requests, for tests that run no other service."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from nats.aio.client import Client

from ioa.adapters.nats.requests.service import open_service
from ioa_groups.read_service import read_endpoints


@asynccontextmanager
async def open_read_service(client: Client) -> AsyncIterator[None]:
    """Answer read requests over a connection."""
    async with open_service(client, "ioa-reads", "Reads goals, groups and logs for users", "1.0.0", read_endpoints(client)):
        yield
