"""Places that are held until a client has taken what lies in them."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from datetime import timedelta

import pytest

from ioa_gateway import held_places
from ioa_gateway.held_places import HeldPlaces, closes_connection
from tests.rig.deadline import eventually

_LONG = timedelta(minutes=1)


class _Clients:
    """Who has places, and whose connections were closed; none lets go of his place by himself."""

    def __init__(self, places: HeldPlaces) -> None:
        self._places = places
        self.closed = list[str]()

    async def hold(self, user: str, *, reads: bool = True) -> None:
        """Have a place until this is cancelled; somebody who reads was handed something."""
        closes_connection.set(lambda: self.closed.append(user))
        async with self._places.place(user, _LONG) as held:
            assert held is not None
            if reads:
                held.begin()
            await asyncio.Event().wait()


@pytest.fixture(name="clients")
def _clients(monkeypatch: pytest.MonkeyPatch) -> _Clients:
    monkeypatch.setattr(held_places, "LONGEST", timedelta(0))
    return _Clients(HeldPlaces(4, 2))


async def _begin(stack: AsyncExitStack, clients: _Clients, *users: str, reads: bool = True) -> None:
    for user in users:
        task = asyncio.get_running_loop().create_task(clients.hold(user, reads=reads))
        stack.callback(task.cancel)


async def test_one_waiting_request_closes_one_connection(clients: _Clients) -> None:
    """The slowest holder loses its place; the others keep theirs until more requests wait."""
    places = clients._places
    async with asyncio.timeout(20), AsyncExitStack() as stack:
        await _begin(stack, clients, "ann", "bob", "eve", "zoe")
        await eventually(lambda: places.taken == 4)
        await _begin(stack, clients, "eve")
        await eventually(lambda: places.waiting.total() == 1)
        for _ in range(5):
            places._make_room()
    assert len(clients.closed) == 1


async def test_who_was_handed_nothing_yet_is_not_slow(clients: _Clients) -> None:
    """What is read for him may take its time, most of all while many wait."""
    places = clients._places
    async with asyncio.timeout(20), AsyncExitStack() as stack:
        await _begin(stack, clients, "ann", "bob", "eve", "eve", reads=False)
        await eventually(lambda: places.taken == 4)
        await _begin(stack, clients, "zoe")
        await eventually(lambda: places.waiting.total() == 1)
        places._make_room()
    assert clients.closed == []
