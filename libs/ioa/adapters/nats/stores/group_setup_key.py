"""Secret key of group setup for launch tickets, seals of uploads and names of files; the first replica creates it."""

from __future__ import annotations

from nats.js import JetStreamContext

from ioa.adapters.nats.streams.compare_and_set import drawn_once
from ioa.adapters.nats.streams.topology import KEYS, LAUNCH_KEY
from ioa.protocol.ids import GoalName
from ioa.protocol.tickets import KEY_BYTES, seal_of, ticket_of


class NatsTickets:
    """HMACs with the key in the bucket `IOA_KEYS`."""

    def __init__(self, js: JetStreamContext) -> None:
        self._js = js
        self._key = b""

    async def of(self, goal: GoalName) -> str:
        """Return the ticket of a goal."""
        return ticket_of(await self._read_key(), goal)

    async def seal(self, words: str) -> str:
        """Return the HMAC of a text."""
        return seal_of(await self._read_key(), words)

    def forget(self) -> None:
        """Read the key again: after a reconnect, the server may have another store."""
        self._key = b""

    async def _read_key(self) -> bytes:
        if not self._key:
            self._key = await drawn_once(self._js, KEYS, LAUNCH_KEY, KEY_BYTES, "The key of launch tickets")
        return self._key
