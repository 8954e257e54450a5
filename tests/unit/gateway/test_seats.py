"""Seats of a gateway: each is connected once."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast

import pytest

from ioa.adapters.nats.wire.connection import NatsSettings
from ioa.errors import ForbiddenError, InvalidInputError, UnavailableError
from ioa.ports.agent_network import AgentNetwork
from ioa.protocol.ids import AgentId
from ioa_gateway.seats import networks_of, open_seats


async def test_seat_is_connected_once_and_again_after_an_error() -> None:
    """A failed connection is repeated at the next call, a seat has one connection, and an invalid name has none."""
    opened, held, is_away = list[AgentId](), set[AgentId](), True

    @asynccontextmanager
    async def network(me: AgentId) -> AsyncIterator[AgentNetwork]:
        if is_away:
            raise UnavailableError("The system is away.")
        opened.append(me)
        held.add(me)
        try:
            yield cast(AgentNetwork, None)
        finally:
            held.remove(me)

    async with open_seats(network) as seats:
        with pytest.raises(UnavailableError):
            await seats.of("anna")
        is_away = False
        for person in ("anna", "anna", "eve", "anna"):
            assert (await seats.of(person)).me == f"human-{person}"
        with pytest.raises(InvalidInputError):
            await seats.of("an na")
        assert (opened, held) == (["human-anna", "human-eve"], {"human-anna", "human-eve"})
    assert held == set()


async def test_seat_with_an_unreadable_seed_is_rejected(tmp_path: Path) -> None:
    """A seed whose path is too long, or whose file contains garbage, rejects the seat only."""
    connection: Any = None
    (tmp_path / "human-eve").mkdir()
    (tmp_path / "human-eve" / "human-eve").write_bytes(b"\xff\x00")
    for folder, person, why in ((tmp_path / ("x" * 300), "anna", ForbiddenError), (tmp_path, "eve", InvalidInputError)):
        async with open_seats(networks_of(connection, NatsSettings("nats://127.0.0.1:9", "x"), folder, is_asked=True)) as seats:
            for _ in range(2):
                with pytest.raises(why):
                    await seats.of(person)
