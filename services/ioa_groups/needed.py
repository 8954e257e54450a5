"""Finding whom the stored teams of tasks need, in the name of the users whose teams these are: as if they searched themselves."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import timedelta

from ioa.errors import RateLimitedError
from ioa.ports.clock import Clock
from ioa.ports.discovery import Discovery
from ioa.ports.inspection import SlowedCaller
from ioa.protocol.ids import UserId
from ioa.protocol.search import NEEDS_OF_ONE, Search, SearchResult
from ioa.quotas import RATES, Family
from ioa.runtime.caller_pace import COME_BACK, CallerPace, tell_nobody
from ioa_groups.users_searches import UsersSearches

CAST_WITHIN = timedelta(seconds=3)
"""How long discovery may take to say who fits the roles of a task's team; a launch that it kept waiting is asked again."""


class NeededAgents:
    """Searches for users, as much as each may search for by himself.

    Args:
        discovery: Knows who fits; it answers within `CAST_WITHIN`, or is away.
        clock: Says for how long nothing is searched for after that.
        now: Seconds of a clock that never goes back.
        slowed: Is told of users whose teams have too much searched for.
    """

    def __init__(
        self,
        discovery: Discovery,
        clock: Clock,
        now: Callable[[], float],
        slowed: Callable[[str, Family], None] = tell_nobody,
    ) -> None:
        self._searches = UsersSearches(discovery, clock, CAST_WITHIN)
        self._pace = CallerPace(now, Family.SEARCH, RATES[Family.SEARCH], slowed)

    async def search(self, user: UserId, asked: Search) -> SearchResult:
        """Ask who fits what a team of a user needs.

        Raises:
            UnavailableError: Discovery does not answer.
            RateLimitedError: Too much is searched for of the user's teams, or discovery has not answered in time.
        """
        if (left := self._searches.put_off(user)) is not None:
            raise _put_off(user, left)
        again = self._pace.put_off(user, counts=lambda: -(-len(asked.needs) // NEEDS_OF_ONE))
        if again is not None:
            raise RateLimitedError(f"Teams of {user} have too much searched for.", retry_after=again)
        found = await self._searches.search(user, asked)
        if found is None:
            raise _put_off(user, self._searches.put_off(user) or COME_BACK)
        return found

    def slowed(self) -> Sequence[SlowedCaller]:
        """Return the users whose teams had too much searched for lately."""
        return self._pace.slowed()


def _put_off(user: UserId, left: timedelta) -> RateLimitedError:
    return RateLimitedError(f"Discovery has not answered in time what a team of {user} needs.", retry_after=left)
