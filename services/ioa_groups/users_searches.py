"""Searching for agents in the names of users: discovery answers group setup for many, and bounds none of them."""

from __future__ import annotations

from datetime import datetime, timedelta

from ioa.errors import UnavailableError
from ioa.fair_turns import FairTurns
from ioa.ports.clock import Clock
from ioa.ports.discovery import Discovery
from ioa.protocol.ids import UserId
from ioa.protocol.search import Search, SearchResult

_SEARCHES = 16
"""How many searches go on at a time, each of another user: what discovery is asked here it answers one after the other."""
_AWAY = timedelta(seconds=5)


class UsersSearches:
    """Searches one thing of each user at a time, and none for a while for whom one took too long: discovery goes on with that.

    Args:
        discovery: Knows who fits.
        clock: Says for how long.
        within: How long a turn is waited for.
    """

    def __init__(self, discovery: Discovery, clock: Clock, within: timedelta) -> None:
        self._discovery = discovery
        self._clock = clock
        self._within = within
        self._turns = FairTurns(_SEARCHES, 1)
        self._not_before: dict[str, datetime] = {}
        """From when on discovery is asked again for somebody whose last search it did not answer in time."""

    def put_off(self, asker: str) -> timedelta | None:
        """Return in how long something is searched for somebody again; None if it is now."""
        until = self._not_before.get(asker)
        left = None if until is None else until - self._clock.now()
        return left if left is not None and left > timedelta(0) else None

    async def search(self, user: UserId, asked: Search, asker: str) -> SearchResult | None:
        """Ask who fits, in the user's turn; None if who asks was put off until then.

        Args:
            user: In whose name.
            asked: What.
            asker: Who it is for, of those who may ask in this name: what takes long for one of them puts none of the others off.

        Raises:
            UnavailableError: Discovery does not answer, or the turn does not come in time.
        """
        async with self._turns.turn(user, within=self._within):
            if self.put_off(asker) is not None:
                return None
            try:
                return await self._discovery.search(asked)
            except UnavailableError:
                now = self._clock.now()
                self._not_before = {one: until for one, until in self._not_before.items() if now < until}
                self._not_before[asker] = now + _AWAY
                raise
