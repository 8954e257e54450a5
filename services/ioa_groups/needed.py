"""Finding whom the stored teams of tasks need, in the name of the users whose teams these are.

Discovery answers group setup for many, and bounds none of them. Of a user's teams as much is searched for as he may search for
himself, one search at a time, and none for a while after one that took too long: discovery goes on with it nevertheless.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import timedelta

from ioa.errors import RateLimitedError, UnavailableError
from ioa.fair_turns import FairTurns
from ioa.ports.discovery import Discovery
from ioa.ports.inspection import SlowedCaller
from ioa.protocol.ids import UserId
from ioa.protocol.search import NEEDS_OF_ONE, Search, SearchResult
from ioa.quotas import RATES, Family
from ioa.runtime.caller_pace import CallerPace, tell_nobody

CAST_WITHIN = timedelta(seconds=3)
"""How long discovery may take to say who fits the roles of a task's team; a launch that it kept waiting is asked again."""

_SEARCHES = 16
"""How many teams are searched for at a time, each of another user."""
_AWAY_SECONDS = 5.0


class NeededAgents:
    """Searches for users.

    Args:
        discovery: Knows who fits; it answers within `CAST_WITHIN`, or is away.
        now: Seconds of a clock that never goes back.
        slowed: Is told of users whose teams have too much searched for.
    """

    def __init__(self, discovery: Discovery, now: Callable[[], float], slowed: Callable[[str, Family], None] = tell_nobody) -> None:
        self._discovery = discovery
        self._now = now
        self._pace = CallerPace(now, Family.SEARCH, RATES[Family.SEARCH], slowed)
        self._turns = FairTurns(_SEARCHES, 1)
        self._not_before: dict[UserId, float] = {}
        """From when on discovery is asked again for somebody whose last search it did not answer in time."""

    async def search(self, user: UserId, search: Search) -> SearchResult:
        """Ask who fits what a team of a user needs.

        Raises:
            UnavailableError: Discovery does not answer.
            RateLimitedError: Too much is searched for of the user's teams.
        """
        self._check(user)
        again = self._pace.put_off(user, counts=lambda: -(-len(search.needs) // NEEDS_OF_ONE))
        if again is not None:
            raise RateLimitedError(f"Teams of {user} have too much searched for.", retry_after=again)
        async with self._turns.turn(user, within=CAST_WITHIN):
            self._check(user)
            try:
                return await self._discovery.search(search)
            except UnavailableError:
                now = self._now()
                self._not_before = {user: until for user, until in self._not_before.items() if now < until}
                self._not_before[user] = now + _AWAY_SECONDS
                raise

    def slowed(self) -> Sequence[SlowedCaller]:
        """Return the users whose teams had too much searched for lately."""
        return self._pace.slowed()

    def _check(self, user: UserId) -> None:
        left = self._not_before.get(user, 0.0) - self._now()
        if left > 0:
            raise RateLimitedError(
                f"Discovery has not answered in time what a team of {user} needs.", retry_after=timedelta(seconds=left)
            )
