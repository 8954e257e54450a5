"""What is read of the system's streams and asked of its services, in turns.

Of one user no more is on its way at a time than leaves room for others. nats-server keeps a few MB for the gateway, over whose
connection all users come, and cuts off who has more unread. How large an answer is nobody knows before it is there, so that each
counts as large as it may be. This holds for whatever is read and asked over that connection, so that no route has to think of it.
"""

from __future__ import annotations

import math
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from contextvars import ContextVar

from ioa.fair_turns import FairTurns, Sharers
from ioa.protocol.codec import MAX_PAYLOAD_BYTES
from ioa.protocol.ids import UserId

AT_ONCE, OF_USER = 6, 3
"""How many megabytes may be on their way, of all and of one user: of 8 MB the rest is for what comes unasked."""
ASKED_AT_ONCE, ASKED_OF_USER = 64, 4
"""How many requests to services: these answer one user in turns themselves, and none may hold up what is asked of others."""

ITSELF = UserId("_itself")
"""As whom nobody can be called. Whoever shows no key is another one: he may ask as often as he likes."""
reads_for: ContextVar[UserId | Sharers] = ContextVar("reads_for", default=ITSELF)
"""For which user a task reads, or for whom what several follow; the gateway reads for itself where nobody says."""


@contextmanager
def reading_as(user: UserId) -> Iterator[None]:
    """Read for a user, or for the gateway itself, whoever has this read."""
    before = reads_for.set(user)
    try:
        yield
    finally:
        reads_for.reset(before)


class Reads:
    """The turns of one connection."""

    def __init__(self) -> None:
        self._read = FairTurns(AT_ONCE, OF_USER)
        self._asked = FairTurns(ASKED_AT_ONCE, ASKED_OF_USER)

    @asynccontextmanager
    async def reading(self, most_bytes: int) -> AsyncIterator[None]:
        """Wait until something may be read that has so many bytes at the most, and read it in the block."""
        places = min(OF_USER, math.ceil(most_bytes / MAX_PAYLOAD_BYTES))
        async with self._read.turn(reads_for.get(), places=places):
            yield

    @asynccontextmanager
    async def asking(self) -> AsyncIterator[None]:
        """Wait until a service may be asked, and ask it in the block."""
        async with self._asked.turn(reads_for.get()):
            yield
