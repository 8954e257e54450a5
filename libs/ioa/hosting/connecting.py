"""Connecting a program to a running system."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from ioa.client.client import Client, open_system
from ioa.hosting.place import PATIENCE, find_place
from ioa.telemetry.logs import handed_to_logging


@asynccontextmanager
async def connect(url: str | None = None) -> AsyncIterator[Client]:
    """Connect to the system in reach, for as long as the block; outages meanwhile are waited out.

    It is the one at `url`, else the one that `IOA_NATS_URL` names, else the one that runs on `.ioa` (or `IOA_DATA`), else the one
    at the default address. Credentials come from the environment, as for every command (`IOA_NATS_SEED`, `IOA_NATS_CA` …). What is
    logged goes to Python's own logging, unless structlog is configured.

    Args:
        url: Where NATS is.

    Raises:
        UnavailableError: No place answers, and the message names each place; or the server rejected the credentials for 30 s.
        InvalidInputError: A setting is not valid.
    """
    with handed_to_logging():
        async with open_system(await find_place(url, "ioa-client"), patience=PATIENCE) as system:
            yield system
