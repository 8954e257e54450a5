"""Public keys of the identity provider: read from a file, or fetched from its URL, once a minute."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from pathlib import Path
from urllib.parse import urlsplit

import structlog
from jwt import PyJWK, PyJWKClient, PyJWKSet
from jwt.exceptions import PyJWTError

from ioa.errors import ForbiddenError, InvalidInputError, UnavailableError, reason_of
from ioa.foreign_text import shown

REFRESH_SECONDS = 60.0
"""Time between two fetches: a new key of the provider is accepted, and a withdrawn key rejected, within this time."""
_TIMEOUT_SECONDS = 10.0
_TRUSTED_SECONDS = 3_600.0
"""Time for which keys are trusted after the last successful fetch."""
_SHOWN_CHARS = 200
_LOOPBACK = ("127.0.0.1", "::1", "localhost")

_log = structlog.get_logger(__name__)

Keys = Mapping[str, PyJWK]


class IssuerKeys:
    """The public keys of an issuer.

    Args:
        fetch: Returns the keys by their ids; called in a thread.
        clock: Monotonic time in seconds.
    """

    def __init__(self, fetch: Callable[[], Keys], clock: Callable[[], float]) -> None:
        self._fetch = fetch
        self._clock = clock
        self._keys: Keys = {}
        self._fetched_at = float("-inf")

    def key(self, key_id: str) -> PyJWK:
        """Return a key by its id.

        Raises:
            ForbiddenError: The issuer has no key with this id.
            UnavailableError: The issuer has not answered for an hour.
        """
        if self._clock() - self._fetched_at > _TRUSTED_SECONDS:
            raise UnavailableError("The identity provider does not answer, so no token can be verified; try again later.")
        if key_id not in self._keys:
            raise ForbiddenError("The token is signed by no known key of its issuer.")
        return self._keys[key_id]

    async def follow(self) -> None:
        """Fetch the keys periodically until cancelled."""
        while True:
            await self.refresh()
            await asyncio.sleep(REFRESH_SECONDS)

    async def refresh(self) -> None:
        """Fetch the keys; if that fails, keep the present keys."""
        try:
            self._keys = await asyncio.to_thread(self._fetch)
        except (PyJWTError, InvalidInputError, OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            _log.warning("issuer_out_of_reach", error=reason_of(error))
        else:
            self._fetched_at = self._clock()


def read_keys(path: Path) -> Keys:
    """Read the keys in a JWKS file.

    Raises:
        InvalidInputError: The file is no JWKS.
    """
    try:
        return _by_id(PyJWKSet.from_json(path.read_text(encoding="utf-8")).keys)
    except (PyJWTError, OSError, ValueError, TypeError, AttributeError) as error:
        raise InvalidInputError(f"{path} is no set of keys (JWKS): {error}.", hint="IOA_CALLOUT_JWKS names it.") from None


def fetch_keys(issuer: str) -> Keys:
    """Fetch the keys of an OpenID Connect provider, from the `jwks_uri` of its discovery document. Redirects are not followed.

    Raises:
        InvalidInputError: A URL is not encrypted.
        PyJWTError: The provider does not answer, or has no keys.
        ValueError: The discovery document is malformed, or names another issuer.
    """
    check_encrypted(issuer)
    about = f"{issuer.rstrip('/')}/.well-known/openid-configuration"
    document = PyJWKClient(about, cache_jwk_set=False, timeout=_TIMEOUT_SECONDS).fetch_data()  # accepts any JSON object
    if document["issuer"] != issuer:
        raise ValueError("the discovery document names another issuer")
    url = str(document["jwks_uri"])
    check_encrypted(url)
    return _by_id(PyJWKClient(url, timeout=_TIMEOUT_SECONDS).get_signing_keys())


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


def _by_id(keys: list[PyJWK]) -> Keys:
    return {key.key_id: key for key in keys if key.key_id and key.public_key_use in ("sig", None)}
