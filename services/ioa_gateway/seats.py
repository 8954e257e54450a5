"""The seats of people that the gateway speaks for. A connection proves who says something in a group, so that each has one."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

from ioa.adapters.nats.agent_network import NatsAgentNetwork
from ioa.adapters.nats.wire.connection import Connection, NatsSettings, open_connection
from ioa.adapters.system_clock import SystemClock
from ioa.cancellation import TaskGroup
from ioa.client.seat import PersonSeat, named
from ioa.errors import ForbiddenError, IoaError, UnavailableError
from ioa.ports.agent_network import AgentNetwork
from ioa.protocol.ids import AgentId
from ioa.protocol.team import person_of

OpenNetwork = Callable[[AgentId], AbstractAsyncContextManager[AgentNetwork]]
"""Opens the system as one seat sees it."""

_PATIENCE = timedelta(seconds=2)
_MOST_HELD = 1_000
"""How many seats are held; the one that was first asked for gives way to another."""


class Seats:
    """Opens seats when they are first asked for, and holds them. Made by `open_seats`."""

    def __init__(self, open_network: OpenNetwork, holding: asyncio.TaskGroup) -> None:
        self._open_network = open_network
        self._holding = holding
        self._held: dict[AgentId, asyncio.Task[None]] = {}
        self._networks: dict[AgentId, asyncio.Future[AgentNetwork]] = {}

    async def of(self, person: str) -> PersonSeat:
        """Return a person's seat.

        Raises:
            InvalidInputError: Nobody can be called so.
            ForbiddenError: The gateway has no key of it.
            UnavailableError: The system does not let it in now.
        """
        me = named(person)
        if me not in self._networks:
            if len(self._held) >= _MOST_HELD:
                self._let_go(next(iter(self._held)))
            self._networks[me] = asyncio.get_running_loop().create_future()
            self._held[me] = self._holding.create_task(self._hold(me, self._networks[me]))
        return PersonSeat(await asyncio.shield(self._networks[me]), person, SystemClock())

    def close(self) -> None:
        """Let go of all of them."""
        for me in list(self._held):
            self._let_go(me)

    def _let_go(self, me: AgentId) -> None:
        _fail(self._networks.pop(me), UnavailableError("The gateway lets go of this seat.", hint="Try again soon."))
        self._held.pop(me).cancel()

    async def _hold(self, me: AgentId, opened: asyncio.Future[AgentNetwork]) -> None:
        try:
            async with self._open_network(me) as network:
                opened.set_result(network)
                await asyncio.Event().wait()
        except IoaError as error:
            if self._networks.get(me) is opened:
                del self._networks[me], self._held[me]  # who asks next tries again
            _fail(opened, error)


def _fail(opened: asyncio.Future[AgentNetwork], error: IoaError) -> None:
    if not opened.done():
        opened.set_exception(error)
        opened.exception()  # whoever asked may have gone


def _is_readable(path: Path) -> bool:
    """Whether there is a file that this process may read: of a name that is too long there is none."""
    try:
        path.read_bytes()
    except OSError:
        return False
    return True


@asynccontextmanager
async def open_seats(open_network: OpenNetwork) -> AsyncIterator[Seats]:
    """Hold what seats are asked for, as long as the block."""
    async with TaskGroup() as holding:
        seats = Seats(open_network, holding)
        yield seats
        seats.close()


def networks_of(connection: Connection, nats: NatsSettings, folder: Path | None, *, is_asked: bool) -> OpenNetwork:
    """Say how a seat speaks: by its own key, or where nobody is asked who he is, over the gateway's own connection.

    Args:
        connection: The gateway's own.
        nats: Where that goes.
        folder: Where the seeds of seats are, if anywhere, as `ioa credentials create --seat` writes them.
        is_asked: Whether the gateway has to say who it is.
    """

    @asynccontextmanager
    async def by_key(me: AgentId) -> AsyncIterator[AgentNetwork]:
        seed = None if folder is None else folder / me / me
        if seed is None or not await asyncio.to_thread(_is_readable, seed):
            person = person_of(me)
            hint = f"Make one by `ioa credentials create --seat {person}`, and name its folder by IOA_SEATS."
            raise ForbiddenError(f"This gateway has no key of {me}, so that nobody is {person} here.", hint=hint)
        async with open_connection(replace(nats, name=f"{nats.name}-{me}", seed=str(seed)), patience=_PATIENCE) as own:
            yield NatsAgentNetwork(own)

    return by_key if is_asked or folder is not None else lambda _me: nullcontext(NatsAgentNetwork(connection))
