"""Secret key of group setup for launch tickets, seals of uploads and names of files; the first replica creates it."""

from __future__ import annotations

from nats.aio.client import Client

from ioa.adapters.nats.stores.records import draw_once
from ioa.adapters.nats.streams.topology import KEYS
from ioa.protocol.ids import GoalName
from ioa.protocol.tickets import KEY_BYTES, seal_of, ticket_of


class NatsTickets:
    """HMACs with the key in the bucket `IOA_KEYS`."""

    def __init__(self, client: Client) -> None:
        self._client = client
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
        self._key = self._key or await draw_once(self._client, KEYS, "launch", KEY_BYTES)
        return self._key
