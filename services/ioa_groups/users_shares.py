"""What each user may have of the store, besides files: goals on record and teams, and goals that wait until they are taken in.

Who has so much of it that others need what is left is put off, by the rule of `runtime.stored_shares`, and nobody else.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Set
from datetime import datetime, timedelta

import structlog

from ioa.errors import UnavailableError
from ioa.ports.clock import Clock
from ioa.ports.store_room import SharedStore, WaitingGoals
from ioa.protocol.ids import LOCAL, UserId
from ioa.quotas import SLOWED_FOR
from ioa.runtime.stored_shares import StoredShares

_LOOK_EVERY, _WHILE_REFUSING = timedelta(seconds=1), timedelta(milliseconds=200)

_SAME = 5
"""For so many looks those are refused who were found to have filled it: to tell whose the goals are takes some MB of them."""

_REMEMBERED = timedelta(seconds=SLOWED_FOR)
"""For how long somebody who has filled it knows so: who does it again does not begin anew."""

_log = structlog.get_logger(__name__)


class KeptShares:
    """Counts what is kept of each user's goals and teams, against what the whole store has left.

    Args:
        store: What they are kept in.
        filling: Who has filled it.
        refused: What is kept of refusals of each, which is told to who has no room as well, as far as nobody is said to fill
            anything by so little; `part` is 0.
    """

    def __init__(self, store: SharedStore, filling: StoredShares, refused: StoredShares) -> None:
        self._store = store
        self._filling = filling
        self._refused = refused

    async def has_room(self, user: UserId) -> bool:
        """Whether more may be kept of a user. Of `LOCAL`, who is everybody, all is."""
        return user == LOCAL or not self._filling.puts_off(user, await self._store.room())

    def note(self, user: UserId, size_bytes: int) -> None:
        """Count what is kept of a user from now on."""
        self._filling.note(user, size_bytes)

    async def has_room_for_refusal(self, user: UserId) -> bool:
        """Whether it may be kept that something of a user was refused: who waits for that waits for nothing else."""
        if await self.has_room(user):
            return True
        room = await self._store.room()
        return room is None or not self._refused.is_over(self._refused.held(user), room)

    def note_refusal(self, user: UserId, size_bytes: int) -> None:
        """Count what is kept of a refusal."""
        self._refused.note(user, size_bytes)
        self.note(user, size_bytes)


class WaitingShares:
    """Looks each second who has filled what all users' goals wait in.

    The server refuses everybody's goals where that is full. So goals of who has filled it are not left there: they are refused,
    until there is room.

    Args:
        goals: Those that wait.
        filling: Who has filled it.
        clock: That by which goals are stored.
        goes_on: Is told of each goal that somebody has published although his are refused: he has the server, which refuses more of
            them than are refused here, work for nobody.
    """

    def __init__(
        self, goals: WaitingGoals, filling: StoredShares, clock: Clock, goes_on: Callable[[UserId], None] = lambda _user: None
    ) -> None:
        self._goals = goals
        self._filling = filling
        self._clock = clock
        self._goes_on = goes_on
        self._over: Set[UserId] = frozenset()
        self._found: dict[UserId, tuple[datetime, datetime]] = {}
        """Of each who has filled it within a minute, when that was found first and last."""
        self._looks = 0

    def is_over(self, user: UserId) -> bool:
        """Whether a user's goals have filled it."""
        return user in self._over

    def refuse(self, user: UserId, stored_at: datetime | None) -> None:
        """Note that a goal of a user is refused, and when it was stored."""
        first, _ = self._found.get(user, (None, None))
        if first is not None and stored_at is not None and stored_at > first:
            self._goes_on(user)

    async def follow(self) -> None:
        """Look, for ever."""
        while True:
            try:
                await self.look()
            except UnavailableError as error:
                _log.warning("goals_not_counted", error=error.message)
            await asyncio.sleep((_WHILE_REFUSING if self._over else _LOOK_EVERY).total_seconds())

    async def look(self) -> None:
        """See who fills it.

        Raises:
            UnavailableError: Nobody can tell.
        """
        room = await self._goals.room()
        if room is None or not self._filling.is_over(room.share_bytes - room.free_bytes, room):
            self._over, self._looks = frozenset(), 0
            return
        self._looks += 1
        if self._over and self._looks % _SAME:
            return
        held = await self._goals.held()
        self._over = frozenset(user for user, size in held.items() if user != LOCAL and self._filling.puts_off(user, room, size))
        now = self._clock.now()
        self._found = {user: found for user, found in self._found.items() if now - found[1] <= _REMEMBERED}
        self._found |= {user: (self._found.get(user, (now, now))[0], now) for user in self._over}
