"""Ending guests whose token is signed by a key that their issuer has withdrawn: by such a key anybody may have come.

Looked at is who is connected and not who was let in, so that it does not matter by which replica that was, nor whether it runs.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping
from contextlib import suppress
from typing import Protocol

import structlog

from ioa.errors import ForbiddenError
from ioa.ports.connections import ConnectionId

_EVERY_SECONDS = 60.0

_log = structlog.get_logger(__name__)


class KnownKeys(Protocol):
    """The keys that an issuer has now, by their thumbprints."""

    def known(self) -> Collection[str]:
        """Return them; none if it has not told them the last time."""

    async def changed(self, since: Collection[str]) -> None:
        """Wait until others are known than these."""

    async def known_anew(self) -> Collection[str]:
        """Have it asked now, and return what is known then."""


class Guests(Protocol):
    """Guests who are connected, to whichever server."""

    async def by_other_keys(self, keys: Collection[str]) -> Mapping[ConnectionId, str]:
        """Return the connections of guests whom none of these keys has let in, and whose key that was.

        Raises:
            ForbiddenError: They may not be looked at.
        """

    async def end(self, connections: Collection[ConnectionId]) -> None:
        """Have connections ended, of which some may remain."""


async def end_withdrawn(keys: KnownKeys, guests: Guests, every: float = _EVERY_SECONDS) -> None:
    """End them for ever: as soon as the keys are others, and each minute, since what is asked of servers may be lost."""
    may, known = True, keys.known()
    while True:
        try:
            await _end_now(keys, guests)
            may = True
        except ForbiddenError as error:
            if may:
                _log.error("withdrawn_not_ended", why=error.message, hint=error.hint)
            may = False
        with suppress(TimeoutError):
            async with asyncio.timeout(every):
                await keys.changed(known)
        known = keys.known()


async def _end_now(keys: KnownKeys, guests: Guests) -> None:
    """Ask the issuer once more before anybody is ended: he may have come by a key that is newer than what is known here."""
    known = keys.known()
    others = await guests.by_other_keys(known) if known else {}
    known = await keys.known_anew() if others else known
    withdrawn = {connection: key for connection, key in others.items() if known and key not in known}
    if withdrawn:
        _log.warning("withdrawn_ended", guests=len(withdrawn), keys=sorted(set(withdrawn.values())))
        await guests.end(withdrawn)
