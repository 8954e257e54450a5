"""Seeing that a server lets in somebody no more, by trying his key: what is written is not yet what the server goes by."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import timedelta
from enum import Enum

from ioa.adapters.nats.connection import NatsSettings, NotLetInError, open_connection
from ioa.errors import IoaError

TRIED = timedelta(seconds=15)
"""Maximum time until a server that was signalled uses the new authorization."""
_EACH, _PAUSE = timedelta(seconds=2), 0.5


class Door(Enum):
    """What was found by trying a key."""

    CLOSED = "closed"
    OPEN = "open"
    UNTRIED = "untried"
    """No server answers where the command looks for one."""


async def try_door(settings: NatsSettings, seed: str, patience: timedelta = TRIED) -> Door:
    """Try a key until it is refused, or the patience is over."""
    tried = replace(settings, seed=seed, token=None, credentials=None, data=None)
    loop = asyncio.get_running_loop()
    until = loop.time() + patience.total_seconds()
    while True:
        try:
            async with open_connection(tried, patience=_EACH, any_payload=True):
                found = Door.OPEN
        except NotLetInError:
            return Door.CLOSED
        except IoaError:
            found = Door.UNTRIED
        if loop.time() > until:
            return found
        await asyncio.sleep(_PAUSE)
