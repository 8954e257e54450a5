"""How much is left of what several share, and whose what fills it is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, Protocol

from ioa.protocol.ids import UserId


class StoreRoom(NamedTuple):
    """How many bytes a part of the store still takes, as it was known last, and how many it takes in all."""

    free_bytes: int
    share_bytes: int


class SharedStore(Protocol):
    """What the streams without bounds of their own still find room in."""

    async def room(self) -> StoreRoom | None:
        """Tell what is left, but for what the logs of groups may still take, as it was a second ago at most; None: no bound."""


class WaitingGoals(Protocol):
    """The goals that wait until they are taken in, of all users."""

    async def room(self) -> StoreRoom | None:
        """Tell what more of them may wait; None: as many as come.

        Raises:
            UnavailableError: Nobody can tell.
        """

    async def held(self) -> Mapping[UserId, int]:
        """Estimate how many bytes of them are whose, by some that are taken at random.

        Raises:
            UnavailableError: Nobody can tell.
        """
