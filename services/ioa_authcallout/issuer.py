"""The public keys of an identity provider: out of a file, or asked of it again and again.

While a provider is away the keys that are known go on verifying tokens, for an hour. Then nobody is let in by a token any more: a
key may have been withdrawn for good reasons. Who is connected stays until his own token runs out.

A set without a key that signs counts as no answer: an issuer by whose keys nobody can be let in has lost them rather than withdrawn
them, and nobody is thrown out for that.
"""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import Awaitable, Callable, Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import urlsplit

import httpx
import structlog
from jwt import PyJWK

from ioa.adapters.http_answers import whole_answer
from ioa.beside import beside
from ioa.cancellation import fail_after
from ioa.errors import ForbiddenError, InvalidInputError, IoaError, UnavailableError
from ioa.foreign_text import shown
from ioa.json_text import parse_json
from ioa.runtime.watched_file import WatchedFile

_ASK_SECONDS, _WAIT_SECONDS = 10.0, 1.5
"""How long a provider may take, and how long somebody waits for it who comes just then: nats-server gives a connection 2 s."""
_EVERY_SECONDS = 60.0
_AGAIN_SECONDS = 5.0
"""How soon a provider is asked again: whoever sends tokens with invented ids of keys causes no more than this."""
_FILE_SECONDS = 5.0
"""How often it is looked whether a file has changed."""
_FILE_HINT = "IOA_CALLOUT_JWKS names it."
_TRUSTED_SECONDS = 3_600.0
_MAX_BYTES = 1_000_000
_SHOWN_CHARS = 200
_MEMBERS = {"EC": ("crv", "kty", "x", "y"), "OKP": ("crv", "kty", "x"), "RSA": ("e", "kty", "n")}
"""What of a key its thumbprint is of, by its kind. Keys of other kinds sign nothing that is taken."""
_THUMBPRINT_BYTES = 12
_LOOPBACK = ("127.0.0.1", "::1", "localhost")

_log = structlog.get_logger(__name__)


@dataclass(frozen=True)
class IssuerKey:
    """A public key, and the beginning of its thumbprint (RFC 7638): a key that takes over the id of another one is another."""

    jwk: PyJWK
    thumbprint: str


class Keys(Protocol):
    """The public keys of an issuer."""

    async def key(self, key_id: str) -> IssuerKey:
        """Return a key by its id.

        Raises:
            ForbiddenError: There is none of this id.
            UnavailableError: That cannot be told now.
        """

    def away(self) -> float | None:
        """For how many seconds they could not be asked for; None if they could the last time."""


class StaticKeys:
    """The keys in a file, read anew when it has changed; while it is no set of keys those that were read last hold.

    Raises:
        InvalidInputError: It is none now.
    """

    def __init__(self, path: Path) -> None:
        self._file = WatchedFile(path, partial(_parse_file, path), _FILE_HINT)

    async def key(self, key_id: str) -> IssuerKey:
        """Return a key by its id."""
        return _found(await self._file.said(), key_id)

    def away(self) -> float | None:
        """They are at hand."""
        return None

    def known(self) -> Collection[str]:
        """Return all that were read last."""
        return _thumbprints(self._file.last)

    async def changed(self, since: Collection[str]) -> None:
        """Wait until there are others than these."""
        while True:
            if await self.known_anew() != since:
                return
            await asyncio.sleep(_FILE_SECONDS)

    async def known_anew(self) -> Collection[str]:
        """Return all that are there now."""
        return _thumbprints(await self._file.said())


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
        self._keys: Mapping[str, IssuerKey] = {}
        self._asked = self._answered = float("-inf")
        self._away_since: float | None = None
        self._is_asking = False
        self._wanted, self._told = asyncio.Event(), asyncio.Event()

    async def key(self, key_id: str) -> IssuerKey:
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

    def known(self) -> Collection[str]:
        """Return the thumbprints of what the provider told last, unless it has not told anything since."""
        return _thumbprints(self._keys) if self._away_since is None else frozenset()

    async def changed(self, since: Collection[str]) -> None:
        """Wait until the provider has told others, while `follow` runs."""
        while self.known() == since:
            await self._told.wait()

    async def known_anew(self) -> Collection[str]:
        """Ask the provider, in patience, while `follow` runs; what it has been asked before this began is not enough."""
        if self._is_asking:
            await self._told.wait()
        self._wanted.set()
        await self._told.wait()
        return self.known()

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
            async with fail_after(_WAIT_SECONDS):
                await self._told.wait()

    async def _ask_anew(self) -> None:
        self._asked = self._clock()
        try:
            async with fail_after(_ASK_SECONDS):
                self._keys = await self._ask()
        except (
            httpx.HTTPError,
            httpx.InvalidURL,
            ValueError,
            KeyError,
            TypeError,
            TimeoutError,
            IoaError,
        ) as error:
            if self._away_since is None:
                self._away_since = self._clock()
            _log.warning("issuer_out_of_reach", issuer=self._issuer, error=str(error) or type(error).__name__)
        else:
            self._answered, self._away_since = self._clock(), None

    async def _ask(self) -> Mapping[str, IssuerKey]:
        about = await self._get(f"{self._issuer.rstrip('/')}/.well-known/openid-configuration")
        if about["issuer"] != self._issuer:
            raise ValueError(f"what is found there speaks for another issuer ({str(about['issuer'])[:200]})")
        return _parse(await self._get(str(about["jwks_uri"])))

    async def _get(self, url: str) -> Any:
        check_private(url)
        async with self._client.stream("GET", url) as response:
            response.raise_for_status()
            return parse_json((await whole_answer(response, _MAX_BYTES)).content)


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


def _parse_file(path: Path, text: str) -> Mapping[str, IssuerKey]:
    try:
        return _parse(parse_json(text))
    except ValueError as error:
        raise InvalidInputError(f"{path} is no set of keys (JWKS): {error}.", hint=_FILE_HINT) from None


def _parse(read: Any) -> Mapping[str, IssuerKey]:
    """Return the keys of a set (RFC 7517) by their ids, but those that sign nothing, or in a way that is not known.

    Raises:
        ValueError: There is none.
    """
    if not isinstance(read, dict) or not isinstance(read.get("keys"), list):
        raise ValueError("it has no list of keys")
    keys: dict[str, IssuerKey] = {}
    for one in read["keys"]:
        try:
            if one.get("use", "sig") == "sig":
                keys[str(one.get("kid", ""))] = IssuerKey(PyJWK(one), _thumbprint(one))
        except Exception as error:  # noqa: BLE001 - whatever libraries say to a key of a kind that is not known here
            _log.info("issuer_key_left_out", error=str(error) or type(error).__name__)
    if not keys:
        raise ValueError("it has no key that signs")
    return keys


def _thumbprint(key: Mapping[str, str]) -> str:
    members = {name: key[name] for name in _MEMBERS[key["kty"]]}
    digest = sha256(json.dumps(members, separators=(",", ":"), sort_keys=True).encode()).digest()
    return base64.urlsafe_b64encode(digest[:_THUMBPRINT_BYTES]).decode()


def _thumbprints(keys: Mapping[str, IssuerKey]) -> frozenset[str]:
    return frozenset(one.thumbprint for one in keys.values())


def _found(keys: Mapping[str, IssuerKey], key_id: str) -> IssuerKey:
    if key_id not in keys:
        raise ForbiddenError("The token is signed by no key of its issuer.")
    return keys[key_id]
