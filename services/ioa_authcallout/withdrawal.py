"""Ending guests whose token is taken no more: its issuer has withdrawn the key that has signed it, or its subject is revoked.

By such a key anybody may have come. Looked at is who is connected and not who was let in, so that it does not matter by which
replica that was, nor whether it runs.

A key that is not among the issuer's may be newer than what he tells here: one of his nodes may tell what it told before, and a file
be older than that of the replica which let the guest in. So it counts as withdrawn when each look finds it missing for a while.
Likewise the key of whom an older callout let in, which did not say it: he comes back by his token, and it is known.
That a subject is revoked counts at once: a replica whose file was older may have let him in since.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Mapping
from contextlib import suppress
from typing import Protocol

import structlog

from ioa.cancellation import fail_after
from ioa.errors import ForbiddenError
from ioa.ports.connections import ConnectionId, ShownToken

SURE_SECONDS = 120.0
"""For how long a key is missing before it counts as withdrawn: Kubernetes takes up to 90 s to bring a changed file to each pod."""
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

    async def connected(self) -> Mapping[ConnectionId, ShownToken]:
        """Return their connections, and what let each in.

        Raises:
            ForbiddenError: They may not be looked at.
        """

    async def end(self, connections: Collection[ConnectionId]) -> None:
        """Have connections ended, of which some may remain."""


async def end_taken_no_more(
    keys: KnownKeys, revoked: Callable[[], Awaitable[Collection[str]]], guests: Guests, sure: float, every: float = _EVERY_SECONDS
) -> None:
    """End them for ever. It is looked as soon as the keys are others, and each minute, since what is asked of servers may be lost.

    Args:
        keys: Those of the issuer.
        revoked: Returns whose tokens are taken no more, as `ShownToken.owner` tells it.
        guests: Who is connected.
        sure: For how many seconds a key has to be missing.
        every: After how many it is looked again; sooner where one is missing.
    """
    may, known = True, keys.known()
    ending = _Ending(keys, revoked, guests, sure, asyncio.get_running_loop().time)
    while True:
        try:
            await ending.look()
            may = True
        except ForbiddenError as error:
            if may:
                _log.error("withdrawn_not_ended", why=error.message, hint=error.hint)
            may = False
        with suppress(TimeoutError):
            async with fail_after(min(every, sure) if ending.is_unsure else every):
                await keys.changed(known)
        known = keys.known()


class _Ending:
    """Ends guests who are revoked, and those of keys that are missing, by what was found before."""

    def __init__(
        self,
        keys: KnownKeys,
        revoked: Callable[[], Awaitable[Collection[str]]],
        guests: Guests,
        sure: float,
        clock: Callable[[], float],
    ) -> None:
        self._keys = keys
        self._revoked = revoked
        self._guests = guests
        self._sure = sure
        self._clock = clock
        self._missing_since: Mapping[str, float] = {}

    @property
    def is_unsure(self) -> bool:
        """Whether a key is missing for too short a time to say that it was withdrawn."""
        now = self._clock()
        return any(now - since < self._sure for since in self._missing_since.values())

    async def look(self) -> None:
        """End who is taken no more."""
        known, revoked = self._keys.known(), await self._revoked()
        if not (known or revoked):
            return
        connected = await self._guests.connected()
        thrown_out = [one for one, token in connected.items() if token.owner in revoked]
        if thrown_out:
            _log.warning("revoked_ended", guests=len(thrown_out))
            await self._guests.end(thrown_out)
        if known:
            await self._end_withdrawn({one: token.key for one, token in connected.items() if token.key not in known})

    async def _end_withdrawn(self, others: Mapping[ConnectionId, str]) -> None:
        """Ask the issuer once more before anybody is ended: what is known here may be older than who has come since."""
        known = await self._keys.known_anew() if others else self._keys.known()
        if not known:
            return
        now = self._clock()
        missing = {*self._missing_since, *others.values()}
        self._missing_since = {key: self._missing_since.get(key, now) for key in missing if key not in known}
        gone = {key for key, since in self._missing_since.items() if now - since >= self._sure}
        withdrawn = {connection: key for connection, key in others.items() if key in gone}
        if withdrawn:
            _log.warning("withdrawn_ended", guests=len(withdrawn), keys=sorted(set(withdrawn.values())))
            await self._guests.end(withdrawn)
