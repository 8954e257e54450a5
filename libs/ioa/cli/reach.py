"""Connecting a command to the system that it speaks to."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from ioa.adapters.nats.wire.connection import NatsSettings
from ioa.client.client import Client, open_system
from ioa.hosting.place import PATIENCE, find_place
from ioa.runtime.settings import ProcessSettings, settings_from
from ioa.telemetry.logs import configure_logs


async def reach(url: str | None) -> NatsSettings:
    """Return how to connect to the first place that answers; logs go to the terminal from here on.

    Raises:
        UnavailableError: There is none; the message names each place.
    """
    level = settings_from(ProcessSettings, os.environ).log_level
    configure_logs(level if "IOA_LOG_LEVEL" in os.environ else "warning", "console")
    return await find_place(url, "ioa-cli")


@asynccontextmanager
async def open_reached_system(url: str | None) -> AsyncIterator[Client]:
    """Connect to the system at the first place that answers."""
    async with open_system(await reach(url), patience=PATIENCE) as system:
        yield system
