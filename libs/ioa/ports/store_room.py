"""How much is left of what several share, and whose what fills it is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, Protocol

from ioa.protocol.ids import UserId

SUBJECT_BYTES = 4_096
"""As how many bytes a subject counts in a stream, besides what is stored on it: nats-server keeps half a kB of each in its memory
as long as something is stored there. Who fills a store by what is small is put off when he has an eighth of it in memory."""
GOAL_SUBJECTS = 3
"""On how many subjects a goal is kept besides its log: on that of its record, of its result, and of its deadline."""


class StoreRoom(NamedTuple):
    """How many bytes a part of the store still takes, as it was known last, and how many it takes in all, subjects counted in."""

    free_bytes: int
    share_bytes: int
    of_subjects: int = 0
    """How many of the bytes that are taken are counted for subjects. By these alone it is not full: the server takes more."""


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
