"""Dead letters: messages that could not be processed."""

from __future__ import annotations

from typing import Protocol

from ioa.protocol.operation.dead_letters import DeadReason


class DeadLetters(Protocol):
    """Messages that could not be processed, stored with the reason."""

    async def put(self, reason: DeadReason, why: str, *, subject: str, data: bytes, key: str = "") -> None:
        """Store a rejected message with the reason as a sentence. Within a day, a `key` is stored once."""
