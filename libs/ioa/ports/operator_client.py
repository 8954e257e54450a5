"""What operators ask for: removing what is over, and looking after what could not be processed."""

from __future__ import annotations

from typing import Protocol

from ioa.ports.dead_letter_box import DeadLetterBox
from ioa.protocol.files import StoredBytes
from ioa.protocol.registry import RemoveAgent
from ioa.protocol.retention import Prune, Pruned


class OperatorClient(Protocol):
    """Upkeep of a system, which ordinary users may not do where the server asks who they are."""

    @property
    def dead_letters(self) -> DeadLetterBox:
        """What could not be processed."""

    async def prune(self, request: Prune) -> Pruned:
        """Remove one part of the goals that ended long ago; the answer says where the next part begins.

        Raises:
            UnavailableError: Nobody answers.
            ForbiddenError: Who asks may not.
        """

    async def stored(self) -> StoredBytes:
        """Ask whose files fill the store."""

    async def remove_agent(self, request: RemoveAgent) -> None:
        """Forget an agent.

        Raises:
            NotFoundError: There is no such agent.
            ConflictError: It is online.
            ForbiddenError: Who asks may not.
        """
