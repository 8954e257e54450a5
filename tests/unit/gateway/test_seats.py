"""Seats that a gateway holds: each is opened once, and let go of when there are too many."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from ioa.adapters.nats.connection import NatsSettings
from ioa.errors import ForbiddenError, InvalidInputError, UnavailableError
from ioa.ports.agent_network import AgentNetwork
from ioa.protocol.api_keys import Scope
from ioa.protocol.ids import AgentId, UserId
from ioa_gateway.callers import Caller
from ioa_gateway.calls import ApiCall
from ioa_gateway.limits import SEATS, CallerLimits
from ioa_gateway.seats import networks_of, open_seats
from tests.rig.deadline import eventually


async def test_seats_of_one_user_are_asked_for_by_turns() -> None:
    """By however many keys: each holds what a person has heard, and eight of one user took all places."""
    limits, seated = CallerLimits(lambda: 0.0), list[str]()

    async def of(_person: str) -> None: ...

    async def sit(key: str, user: str) -> None:
        caller = Caller(key, UserId(user), frozenset({Scope.SEATS}), people=frozenset({"anna"}))
        call: Any = SimpleNamespace(caller=caller, limits=limits, seats=SimpleNamespace(of=of))
        async with ApiCall.seat(call, "anna"):
            seated.append(key)
            await asyncio.Event().wait()

    sitting = [asyncio.ensure_future(sit(key, user)) for key, user in (*((f"e{one}", "eve") for one in range(20)), ("a", "ann"))]
    await eventually(lambda: len(seated), lambda number: number >= 5)
    for one in sitting:
        one.cancel()
    assert ("a" in seated, len(seated) < SEATS // 2) == (True, True)


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
