"""Where the keys are kept by which programs and people come in by HTTP."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol

from ioa.protocol.api_keys import ApiKey, KeyId, LoginToken, SignedOut


class ApiKeyStore(Protocol):
    """Keys by their ids. Every method raises `UnavailableError` when the store does not answer."""

    async def keys(self) -> Sequence[ApiKey]:
        """Read all keys, those that have expired too."""

    async def put(self, key: ApiKey) -> None:
        """Keep a key; one of the same id is replaced."""

    async def remove(self, key_id: KeyId) -> None:
        """Forget a key, and which of its sessions ended.

        Raises:
            NotFoundError: There is no such key.
        """

    async def put_token(self, token: LoginToken) -> None:
        """Keep a token that lets somebody in once."""

    async def take_token(self, digest: str) -> LoginToken | None:
        """Use a token up; of all who ask for it one gets it. None if it was used, or never was."""

    async def sign_out(self, key_id: KeyId, until: int, now: datetime) -> SignedOut:
        """Keep that the session of a key that would end then (ms since 1970) is over, and return all of it that are."""

    async def signed_out(self) -> Sequence[SignedOut]:
        """Read which sessions ended before their time, by key."""

    async def cookie_secret(self) -> bytes:
        """Return what cookies are sealed with, the same for everybody; it is drawn when first asked for."""

    async def end_sessions(self) -> None:
        """Have cookies be sealed with something else from now on, so that none of before counts."""
