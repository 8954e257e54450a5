"""Whether nats-server lets somebody in."""

from __future__ import annotations

from datetime import timedelta

from ioa.adapters.nats.wire.connection import NatsSettings, open_connection
from ioa.errors import UnavailableError


async def is_let_in(settings: NatsSettings) -> bool:
    """Try once to connect, and leave again."""
    try:
        async with open_connection(settings, patience=timedelta(0)):
            return True
    except UnavailableError:
        return False
