"""Public keys of the identity provider: from a file, or fetched from its URL."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Protocol
from urllib.parse import urlsplit

import structlog
from jwt import PyJWK, PyJWKClient, PyJWKSet
from jwt.exceptions import PyJWTError

from ioa.cancellation import fail_after
from ioa.errors import ForbiddenError, InvalidInputError, UnavailableError
from ioa.foreign_text import shown
from ioa.runtime.watched_file import WatchedFile

REFRESH_SECONDS, COOLDOWN_SECONDS = 60.0, 5.0
"""Time between two fetches, and the minimum time: tokens with unknown key ids cause at most one fetch per cooldown."""
_TIMEOUT_SECONDS, _WAIT_SECONDS = 10.0, 1.5
"""Timeout of a request to the provider, and of a token with an unknown key: nats-server ends its connection after 2 s."""
_TRUSTED_SECONDS = 3_600.0
"""Time for which keys are trusted after the last successful fetch."""
_SHOWN_CHARS = 200
_LOOPBACK = ("127.0.0.1", "::1", "localhost")
_FILE_HINT = "IOA_CALLOUT_JWKS names it."

_log = structlog.get_logger(__name__)


class IssuerKeys(Protocol):
    """The public keys of one issuer."""

    async def key(self, key_id: str) -> PyJWK:
        """Return a key by its id.

        Raises:
            ForbiddenError: The issuer has no key with this id.
            UnavailableError: The issuer does not answer.
        """

    def failing_seconds(self) -> float | None:
        """Return the seconds since the first failed fetch; None if the last fetch succeeded."""


class FileKeys:
    """Keys in a JWKS file, read again when the file changes.

    Raises:
        InvalidInputError: The file is no JWKS. If it becomes invalid later, the keys read before stay in use.
    """

    def __init__(self, path: Path) -> None:
        self._file = WatchedFile(path, partial(_parse_file, path), _FILE_HINT)

    async def key(self, key_id: str) -> PyJWK:
        """Return a key by its id."""
        return _find(await self._file.said(), key_id)

    def failing_seconds(self) -> float | None:
        """Return None: a file is always available."""
        return None


class ProviderKeys:
    """Keys of an OpenID Connect provider, fetched in the background from the `jwks_uri` of its discovery document.

    Args:
        issuer: URL of the provider.
        clock: Monotonic time in seconds.
    """

    def __init__(self, issuer: str, clock: Callable[[], float]) -> None:
        self._issuer = issuer
        self._clock = clock
        self._keys: Mapping[str, PyJWK] = {}
        self._fetched_at = float("-inf")
        self._failing_since: float | None = None
        self._cools_down = False
        self._requested, self._attempted = asyncio.Event(), asyncio.Event()

    async def key(self, key_id: str) -> PyJWK:
        """Return a key by its id; if it is unknown, wait for the next fetch, at most 1.5 s."""
        if (key_id not in self._keys or self._is_expired()) and not self._cools_down:
            self._requested.set()
            with suppress(TimeoutError):
                async with fail_after(_WAIT_SECONDS):
                    await self._attempted.wait()
        if self._is_expired():
            raise UnavailableError("The identity provider does not answer, so no token can be verified; try again later.")
        if key_id not in self._keys and (self._failing_since is not None or not self._cools_down):
            raise UnavailableError("The key of the token is unknown, and the identity provider does not answer; try again later.")
        return _find(self._keys, key_id)

    def failing_seconds(self) -> float | None:
        """Return the seconds since the first failed fetch; None if the last fetch succeeded."""
        return None if self._failing_since is None else self._clock() - self._failing_since

    async def follow(self) -> None:
        """Fetch the keys every minute, and when an unknown key is requested, until cancelled."""
        while True:
            self._requested.clear()
            await self._fetch()
            self._cools_down = True
            attempted, self._attempted = self._attempted, asyncio.Event()
            attempted.set()
            await asyncio.sleep(COOLDOWN_SECONDS)
            self._cools_down = False
            with suppress(TimeoutError):
                async with fail_after(REFRESH_SECONDS - COOLDOWN_SECONDS):
                    await self._requested.wait()

    def _is_expired(self) -> bool:
        return self._clock() - self._fetched_at > _TRUSTED_SECONDS

    async def _fetch(self) -> None:
        try:
            self._keys = await asyncio.to_thread(_fetch_keys, self._issuer)
        except (PyJWTError, InvalidInputError, OSError, ValueError, KeyError, TypeError) as error:
            if self._failing_since is None:
                self._failing_since = self._clock()
            _log.warning("issuer_out_of_reach", issuer=self._issuer, error=str(error) or type(error).__name__)
        else:
            self._fetched_at, self._failing_since = self._clock(), None


def check_encrypted(url: str) -> None:
    """Check that a URL uses https, or names this machine.

    Raises:
        InvalidInputError: It does not.
    """
    parts = urlsplit(url)
    if parts.scheme != "https" and not (parts.scheme == "http" and parts.hostname in _LOOPBACK):
        raise InvalidInputError(
            f"Keys are not fetched from {shown(url[:_SHOWN_CHARS])}: the connection is not encrypted.",
            hint="Use an https:// URL, or a file with the issuer's keys (IOA_CALLOUT_JWKS).",
        )


def _fetch_keys(issuer: str) -> Mapping[str, PyJWK]:
    check_encrypted(issuer)
    about = f"{issuer.rstrip('/')}/.well-known/openid-configuration"
    document = PyJWKClient(about, cache_jwk_set=False, timeout=_TIMEOUT_SECONDS).fetch_data()  # any JSON object, without redirects
    if document["issuer"] != issuer:
        raise ValueError("the discovery document names another issuer")
    url = str(document["jwks_uri"])
    check_encrypted(url)
    return _by_id(PyJWKClient(url, timeout=_TIMEOUT_SECONDS).get_signing_keys())


def _parse_file(path: Path, text: str) -> Mapping[str, PyJWK]:
    try:
        keys = _by_id(PyJWKSet.from_json(text).keys)
    except (PyJWTError, ValueError, TypeError, AttributeError) as error:
        raise InvalidInputError(f"{path} is no set of keys (JWKS): {error}.", hint=_FILE_HINT) from None
    return keys


def _by_id(keys: Iterable[PyJWK]) -> Mapping[str, PyJWK]:
    return {str(key.key_id or ""): key for key in keys if key.public_key_use in ("sig", None)}


def _find(keys: Mapping[str, PyJWK], key_id: str) -> PyJWK:
    if key_id not in keys:
        raise ForbiddenError("The token is signed by no key of its issuer.")
    return keys[key_id]
