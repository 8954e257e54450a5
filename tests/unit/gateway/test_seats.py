"""Seats that a gateway holds: each is opened once, and let go of when there are too many."""

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


async def test_a_seat_is_opened_once_and_gives_way(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who is asked for again is there; many names take up no more than a bound, and one that is none takes up nothing."""
    monkeypatch.setattr("ioa_gateway.seats._MOST_HELD", 2)
    opened, held, is_away = list[AgentId](), set[AgentId](), True

    @asynccontextmanager
    async def network(me: AgentId) -> AsyncIterator[AgentNetwork]:
        if is_away:
            raise UnavailableError("Nobody answers.")
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
        for person in ("anna", "anna", "eve", "joe", "anna"):
            assert (await seats.of(person)).me == f"human-{person}"
        with pytest.raises(InvalidInputError):
            await seats.of("an na")
        assert (opened, held) == (["human-anna", "human-eve", "human-joe", "human-anna"], {"human-joe", "human-anna"})
    assert held == set()


async def test_a_file_that_cannot_be_read_ends_nothing(tmp_path: Path) -> None:
    """Whoever asks for a seat whose file cannot even be looked for, or holds garbage, is refused, and the gateway goes on."""
    connection: Any = None
    (tmp_path / "human-eve").mkdir()
    (tmp_path / "human-eve" / "human-eve").write_bytes(b"\xff\x00")
    for folder, person, why in ((tmp_path / ("x" * 300), "anna", ForbiddenError), (tmp_path, "eve", InvalidInputError)):
        async with open_seats(networks_of(connection, NatsSettings("nats://127.0.0.1:9", "x"), folder, is_asked=True)) as seats:
            for _ in range(2):
                with pytest.raises(why):
                    await seats.of(person)
