"""Connections of the seats of people. A connection proves the sender of a message, so each use of a seat has its own."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

from ioa.adapters.nats.nats_agent_network import NatsAgentNetwork
from ioa.adapters.nats.wire.connection import Connection, NatsSettings, open_connection
from ioa.errors import ForbiddenError
from ioa.ports.agent_network import AgentNetwork
from ioa.protocol.ids import AgentId
from ioa.protocol.teams.team_file import person_of

_PATIENCE = timedelta(seconds=2)
"""Timeout for connecting a seat."""


@asynccontextmanager
async def open_seat(
    me: AgentId, *, connection: Connection, nats: NatsSettings, folder: Path | None, is_asked: bool
) -> AsyncIterator[AgentNetwork]:
    """Open the network for a seat, over the gateway's connection in a system without keys (not `is_asked`).

    Raises:
        ForbiddenError: The folder has no seed of the seat, as `ioa credentials create --seat` writes it.
    """
    if folder is None and not is_asked:
        yield NatsAgentNetwork(connection)
        return
    seed = None if folder is None else folder / me / me
    if seed is None or not await asyncio.to_thread(os.access, seed, os.R_OK):
        person = person_of(me)
        hint = f"Make one by `ioa credentials create --seat {person}`, and name its folder by IOA_SEATS."
        raise ForbiddenError(f"This gateway has no key of {me}, and cannot speak as {person}.", hint=hint)
    async with open_connection(replace(nats, name=f"{nats.name}-{me}", seed=str(seed)), patience=_PATIENCE) as own:
        yield NatsAgentNetwork(own)
