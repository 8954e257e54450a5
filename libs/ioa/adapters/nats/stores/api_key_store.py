"""The HTTP keys, login tokens and the cookie secret in the bucket `IOA_API_KEYS`."""

from __future__ import annotations

import secrets
from collections.abc import Sequence

from nats.aio.client import Client

from ioa.adapters.nats.stores.records import Records, draw_once
from ioa.adapters.nats.streams.topology import API_KEYS
from ioa.errors import NotFoundError
from ioa.protocol.operation.api_keys import ApiKey, KeyId, LoginToken

_COOKIE = "cookie"
_SECRET_BYTES = 32


class NatsApiKeys:
    """HTTP keys by id, stored as digests."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._keys = Records(client, API_KEYS, ApiKey)
        self._tokens = Records(client, API_KEYS, LoginToken)

    async def keys(self) -> Sequence[ApiKey]:
        """Return all keys, from any replica."""
        return [key async for key in self._keys.all("key.*")]

    async def find(self, key_id: KeyId) -> ApiKey | None:
        """Return a key; None if there is no such key."""
        return await self._keys.find(f"key.{key_id}")

    async def put(self, key: ApiKey) -> None:
        """Store a key."""
        await self._keys.put(f"key.{key.key_id}", key)

    async def remove(self, key_id: KeyId) -> None:
        """Remove a key."""
        if await self.find(key_id) is None:
            raise NotFoundError(f"There is no key {key_id}.", hint="`ioa keys list` lists the keys.")
        await self._keys.erase(f"key.{key_id}")

    async def put_token(self, token: LoginToken) -> None:
        """Store a login token."""
        await self._tokens.put(f"once.{token.digest}", token)

    async def take_token(self, digest: str) -> LoginToken | None:
        """Return a login token, once."""
        token, seq = await self._tokens.read(f"once.{digest}")
        return token if token is not None and await self._tokens.put_onto(f"once.{digest}", None, last=seq) else None

    async def cookie_secret(self) -> bytes:
        """Return the secret of cookies' HMACs; the first caller creates it."""
        return await draw_once(self._client, API_KEYS, _COOKIE, _SECRET_BYTES)

    async def end_sessions(self) -> None:
        """Replace the secret of cookies, which ends all sessions."""
        await self._keys.stream.publish(self._keys.subject(_COOKIE), secrets.token_bytes(_SECRET_BYTES))
