"""Seats that a gateway holds: each is opened once, and let go of when there are too many."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import cast

import pytest

from ioa.errors import InvalidInputError, UnavailableError
from ioa.ports.agent_network import AgentNetwork
from ioa.protocol.ids import AgentId
from ioa_gateway.seats import open_seats


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
