"""What each user may have of the store, besides files: goals on record and teams, and goals that wait until they are taken in.

Who has so much of it that others need what is left is put off, by the rule of `runtime.stored_shares`, and nobody else.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Set
from datetime import datetime, timedelta
from typing import NamedTuple

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

_OPEN_PART = 4
"""One part of so many of it one user's goals may keep that are open, which nobody refuses: some replicas count each for itself."""
_SEEN_AGAIN = timedelta(minutes=5)
"""Within which time a goal that is open is given out to each of a few replicas; it comes back after half a minute at most."""

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


class _Kept(NamedTuple):
    """Whose an open goal is, how many bytes it keeps of what all goals wait in, and when it was seen last."""

    user: UserId
    size_bytes: int
    seen: datetime


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
        self._share_bytes: int | None = None
        self._kept: dict[str, _Kept] = {}
        """Goals that stay there until they have ended, those last that were seen last."""
        self._kept_of = Counter[UserId]()

    def is_over(self, user: UserId) -> bool:
        """Whether a user's goals have filled it."""
        return user in self._over

    def refuse(self, user: UserId, stored_at: datetime | None) -> None:
        """Note that a message of a user is refused, for whatever reason, or comes to nothing, and when it was stored."""
        first, _ = self._found.get(user, (None, None))
        if self.is_over(user) and first is not None and stored_at is not None and stored_at > first:
            self._goes_on(user)

    def take(self, identity: str, user: UserId, size_bytes: int) -> bool:
        """Count a goal that is to stay there until it has ended, if its user may keep so much; one alone may be of any size."""
        self._forget_unseen()
        kept = 0 if identity in self._kept or user == LOCAL else self._kept_of[user]
        if kept and self._share_bytes is not None and (kept + size_bytes) * _OPEN_PART > self._share_bytes:
            return False
        self.keep(identity, user, size_bytes)
        return True

    def keep(self, identity: str, user: UserId, size_bytes: int) -> None:
        """Count a goal that stays there, whatever it keeps: it is on record."""
        self.give_back(identity)
        self._kept[identity] = _Kept(user, size_bytes, self._clock.now())
        self._kept_of[user] += size_bytes

    def give_back(self, identity: str) -> None:
        """Count a goal no more."""
        if (kept := self._kept.pop(identity, None)) is not None:
            self._kept_of[kept.user] -= kept.size_bytes
            if not self._kept_of[kept.user]:
                del self._kept_of[kept.user]

    def _forget_unseen(self) -> None:
        """Count no more what was not seen for long: another replica has seen it end."""
        since = self._clock.now() - _SEEN_AGAIN
        while self._kept and (oldest := next(iter(self._kept.items())))[1].seen < since:
            self.give_back(oldest[0])

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
        self._share_bytes = None if room is None else room.share_bytes
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
