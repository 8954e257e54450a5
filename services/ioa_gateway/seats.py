"""Connections of the seats of people. A connection proves the sender of a message, so each use of a seat has its own."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

from ioa.adapters.nats.agent_network import NatsAgentNetwork
from ioa.adapters.nats.wire.connection import Connection, NatsSettings, open_connection
from ioa.errors import ForbiddenError
from ioa.ports.agent_network import AgentNetwork
from ioa.protocol.ids import AgentId
from ioa.protocol.team import person_of

OpenNetwork = Callable[[AgentId], AbstractAsyncContextManager[AgentNetwork]]
"""Opens the network for a seat."""
_PATIENCE = timedelta(seconds=2)
"""Timeout for connecting a seat."""


def networks_of(connection: Connection, nats: NatsSettings, folder: Path | None, *, is_asked: bool) -> OpenNetwork:
    """Return a function that opens the network for a seat.

    Args:
        connection: The gateway's connection, which seats use in a system without keys.
        nats: The settings of that connection.
        folder: The folder with the seeds of seats, as `ioa credentials create --seat` writes them.
        is_asked: Whether the system requires keys.
    """

    @asynccontextmanager
    async def by_key(me: AgentId) -> AsyncIterator[AgentNetwork]:
        seed = None if folder is None else folder / me / me
        if seed is None or not await asyncio.to_thread(os.access, seed, os.R_OK):
            person = person_of(me)
            hint = f"Make one by `ioa credentials create --seat {person}`, and name its folder by IOA_SEATS."
            raise ForbiddenError(f"This gateway has no key of {me}, so that nobody is {person} here.", hint=hint)
        async with open_connection(replace(nats, name=f"{nats.name}-{me}", seed=str(seed)), patience=_PATIENCE) as own:
            yield NatsAgentNetwork(own)

    return by_key if is_asked or folder is not None else lambda _me: nullcontext(NatsAgentNetwork(connection))
