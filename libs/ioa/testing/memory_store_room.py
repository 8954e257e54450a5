"""Room in the store as a test says."""

from __future__ import annotations

from collections.abc import Mapping

from ioa.ports.store_room import StoreRoom
from ioa.protocol.ids import UserId


class MemoryStoreRoom:
    """A `SharedStore` and `WaitingGoals` for unit tests. False in this: it counts nothing."""

    def __init__(self) -> None:
        self.left: StoreRoom | None = None
        """What is left."""
        self.of_users: dict[UserId, int] = {}
        """How many bytes are whose."""

    async def room(self) -> StoreRoom | None:
        """Tell what is left."""
        return self.left

    async def held(self) -> Mapping[UserId, int]:
        """Tell how many bytes are whose."""
        return self.of_users
