"""Keys of HTTP in memory."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from ioa.errors import NotFoundError
from ioa.protocol.api_keys import ApiKey, KeyId, LoginToken, SignedOut


class MemoryApiKeys:
    """An `ApiKeyStore` that forgets everything with the process, and whose cookies everybody can forge."""

    def __init__(self) -> None:
        self._keys: dict[KeyId, ApiKey] = {}
        self._tokens: dict[str, LoginToken] = {}
        self._signed_out: dict[KeyId, SignedOut] = {}
        self._sealed = "known to all"

    async def keys(self) -> Sequence[ApiKey]:
        """Read all keys."""
        return list(self._keys.values())

    async def put(self, key: ApiKey) -> None:
        """Keep a key."""
        self._keys[key.key_id] = key

    async def remove(self, key_id: KeyId) -> None:
        """Forget a key."""
        if self._keys.pop(key_id, None) is None:
            raise NotFoundError(f"There is no key {key_id}.", hint="`ioa keys list` lists them.")
        self._signed_out.pop(key_id, None)

    async def put_token(self, token: LoginToken) -> None:
        """Keep a token."""
        self._tokens[token.digest] = token

    async def take_token(self, digest: str) -> LoginToken | None:
        """Use a token up."""
        return self._tokens.pop(digest, None)

    async def sign_out(self, key_id: KeyId, until: int, now: datetime) -> SignedOut:
        """Keep that a session is over."""
        found = self._signed_out.get(key_id, SignedOut(key_id=key_id)).with_one_more(until, now)
        self._signed_out[key_id] = found
        return found

    async def signed_out(self) -> Sequence[SignedOut]:
        """Read which sessions ended before their time."""
        return list(self._signed_out.values())

    async def cookie_secret(self) -> bytes:
        """Return what cookies are sealed with."""
        return self._sealed.encode()

    async def end_sessions(self) -> None:
        """Seal cookies with something else."""
        self._sealed += "."
