"""The public keys of an identity provider: out of a file, or asked of it again and again.

While a provider is away the keys that are known go on verifying tokens, for an hour. Then nobody is let in by a token any more: a
key may have been withdrawn for good reasons. Who is connected stays until his own token runs out.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import urlsplit

import httpx
import structlog
from jwt import PyJWK

from ioa.beside import beside
from ioa.errors import ForbiddenError, InvalidInputError, IoaError, UnavailableError
from ioa.foreign_text import shown
from ioa_authcallout.settings import read

_ASK_SECONDS, _WAIT_SECONDS = 10.0, 1.5
"""How long a provider may take, and how long somebody waits for it who comes just then: nats-server gives a connection 2 s."""
_EVERY_SECONDS = 60.0
_AGAIN_SECONDS = 5.0
"""How soon a provider is asked again: whoever sends tokens with invented ids of keys causes no more than this."""
_TRUSTED_SECONDS = 3_600.0
_MAX_BYTES = 1_000_000
_SHOWN_CHARS = 200
_LOOPBACK = ("127.0.0.1", "::1", "localhost")

_log = structlog.get_logger(__name__)


class Keys(Protocol):
    """The public keys of an issuer."""

    async def key(self, key_id: str) -> PyJWK:
        """Return a key by its id.

        Raises:
            ForbiddenError: There is none of this id.
            UnavailableError: That cannot be told now.
        """

    def away(self) -> float | None:
        """For how many seconds they could not be asked for; None if they could the last time."""


class StaticKeys:
    """The keys in a file, read once."""

    def __init__(self, path: Path) -> None:
        try:
            self._keys = _parse(json.loads(read(path)))
        except (ValueError, RecursionError) as error:
            raise InvalidInputError(f"{path} is no set of keys (JWKS): {error}.", hint="IOA_CALLOUT_JWKS names it.") from None

    async def key(self, key_id: str) -> PyJWK:
        """Return a key by its id."""
        return _found(self._keys, key_id)

    def away(self) -> float | None:
        """They are at hand."""
        return None


class ProviderKeys:
    """The keys of an OIDC provider, by its discovery document (OpenID Connect Discovery 1.0).

    Args:
        issuer: Its URL.
        client: What asks it.
        clock: Seconds that never go back.
    """

    def __init__(self, issuer: str, client: httpx.AsyncClient, clock: Callable[[], float]) -> None:
        self._issuer = issuer
        self._client = client
        self._clock = clock
        self._keys: Mapping[str, PyJWK] = {}
        self._asked = self._answered = float("-inf")
        self._away_since: float | None = None
        self._is_asking = False
        self._wanted, self._told = asyncio.Event(), asyncio.Event()

    async def key(self, key_id: str) -> PyJWK:
        """Return a key by its id; the provider is asked for one that is not known, while `follow` runs."""
        if key_id not in self._keys or self._is_old():
            await self._wait_for_news()
        if self._is_old():
            raise UnavailableError("The identity provider does not answer, so that no token can be checked; try again later.")
        if key_id not in self._keys and self._away_since is not None:
            raise UnavailableError("The token is signed by a key that is not known, and the identity provider does not answer.")
        if key_id not in self._keys and self._is_asking:
            raise UnavailableError("The token is signed by a key that is not known yet; the identity provider is being asked.")
        return _found(self._keys, key_id)

    def away(self) -> float | None:
        """For how many seconds the provider has not answered; None if it did the last time."""
        return None if self._away_since is None else self._clock() - self._away_since

    async def follow(self, sleep: Callable[[float], Awaitable[None]]) -> None:
        """Ask for ever: each minute, so that a key that was withdrawn is forgotten, and when one is wanted that is not known.

        Nobody else asks, so that no asking ends before the provider's patience does because who has wanted it is gone.
        """
        self._wanted.set()
        async with beside(self._want_each_minute(sleep)):
            while True:
                await self._wanted.wait()
                self._wanted.clear()
                self._is_asking = True
                try:
                    await self._ask_anew()
                finally:
                    self._is_asking = False
                told, self._told = self._told, asyncio.Event()
                told.set()

    def _is_old(self) -> bool:
        return self._clock() - self._answered > _TRUSTED_SECONDS

    async def _want_each_minute(self, sleep: Callable[[float], Awaitable[None]]) -> None:
        while True:
            await sleep(_EVERY_SECONDS)
            self._wanted.set()

    async def _wait_for_news(self) -> None:
        """Have the provider asked, unless it was a moment ago, and wait a moment for what it says."""
        if not self._is_asking:
            if self._clock() - self._asked < _AGAIN_SECONDS:
                return
            self._wanted.set()
        with suppress(TimeoutError):
            async with asyncio.timeout(_WAIT_SECONDS):
                await self._told.wait()

    async def _ask_anew(self) -> None:
        self._asked = self._clock()
        try:
            async with asyncio.timeout(_ASK_SECONDS):
                self._keys = await self._ask()
        except (
            httpx.HTTPError,
            httpx.InvalidURL,
            ValueError,
            KeyError,
            TypeError,
            RecursionError,
            TimeoutError,
            IoaError,
        ) as error:
            if self._away_since is None:
                self._away_since = self._clock()
            _log.warning("issuer_out_of_reach", issuer=self._issuer, error=str(error) or type(error).__name__)
        else:
            self._answered, self._away_since = self._clock(), None

    async def _ask(self) -> Mapping[str, PyJWK]:
        about = await self._get(f"{self._issuer.rstrip('/')}/.well-known/openid-configuration")
        if about["issuer"] != self._issuer:
            raise ValueError(f"what is found there speaks for another issuer ({str(about['issuer'])[:200]})")
        return _parse(await self._get(str(about["jwks_uri"])))

    async def _get(self, url: str) -> Any:
        check_private(url)
        async with self._client.stream("GET", url) as response:
            response.raise_for_status()
            read = bytearray()
            async for part in response.aiter_bytes():
                read += part
                if len(read) > _MAX_BYTES:
                    raise ValueError(f"it answers with more than {_MAX_BYTES:,} bytes")
        return json.loads(bytes(read))


def check_private(url: str) -> None:
    """See that nobody on the way can put other keys into what an issuer says.

    Raises:
        InvalidInputError: Anybody could.
    """
    asked = urlsplit(url)
    if asked.scheme != "https" and not (asked.scheme == "http" and asked.hostname in _LOOPBACK):
        raise InvalidInputError(
            f"{shown(url[:_SHOWN_CHARS])} is not asked for keys, since it is not encrypted.",
            hint="Name an https:// URL, or give the issuer's keys as a file by IOA_CALLOUT_JWKS.",
        )


def _parse(read: Any) -> Mapping[str, PyJWK]:
    """Return the keys of a set (RFC 7517) by their ids, but those that sign nothing, or in a way that is not known."""
    if not isinstance(read, dict) or not isinstance(read.get("keys"), list):
        raise ValueError("it has no list of keys")
    keys: dict[str, PyJWK] = {}
    for one in read["keys"]:
        try:
            if one.get("use", "sig") == "sig":
                keys[str(one.get("kid", ""))] = PyJWK(one)
        except Exception as error:  # noqa: BLE001 - whatever libraries say to a key of a kind that is not known here
            _log.info("issuer_key_left_out", error=str(error) or type(error).__name__)
    return keys


def _found(keys: Mapping[str, PyJWK], key_id: str) -> PyJWK:
    if key_id not in keys:
        raise ForbiddenError("The token is signed by no key of its issuer.")
    return keys[key_id]
