"""Connecting a program to a running system."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from ioa.client.client import Client, open_system
from ioa.hosting.place import PATIENCE, find_place
from ioa.telemetry.logs import handed_to_logging


@asynccontextmanager
async def connect(url: str | None = None) -> AsyncIterator[Client]:
    """Connect to the system in reach during the block; the connection continues after outages.

    The system is at `url`, otherwise at `IOA_NATS_URL`, otherwise at the address in `.ioa` (or `IOA_DATA`), otherwise at the
    default address. Credentials come from the environment, as for every command (`IOA_NATS_SEED`, `IOA_NATS_CA` …). Log lines go to
    Python's own logging, unless structlog is configured.

    Args:
        url: The address of NATS.

    Raises:
        UnavailableError: No place answers, and the message names each place; or the server rejected the credentials for 30 s.
        InvalidInputError: A setting is not valid.
    """
    with handed_to_logging():
        async with open_system(await find_place(url, "ioa-client"), patience=PATIENCE) as system:
            yield system
