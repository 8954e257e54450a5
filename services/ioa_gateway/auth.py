"""Authentication of HTTP callers: by an API key, or by the session cookie of a browser that has sent a key.

The keys are read from their bucket every few seconds. A session is not stored: its cookie contains the key's id and an expiry time,
signed with a secret of all replicas. It ends with its key, and on one machine with the run of the system.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import datetime, timedelta

import structlog
from starlette.requests import HTTPConnection

from ioa.adapters.nats.stores.api_key_store import NatsApiKeys
from ioa.concurrency import fail_after
from ioa.errors import ForbiddenError, InvalidInputError, UnauthenticatedError, UnavailableError
from ioa.protocol.operation.api_keys import KNOWN_FOR, ApiKey, KeyId, digest_of_secret, parse_key
from ioa_gateway.caller import Caller

COOKIE = "ioa_session"
SESSION = timedelta(hours=12)
"""Lifetime of a browser session."""

_SAFE = ("GET", "HEAD")
_HOW = "Send `Authorization: Bearer ioa_…`; `ioa keys create` makes a key."

_log = structlog.get_logger(__name__)


class Keyring:
    """Authenticates callers.

    Args:
        read_every: Time between two reads of the keys, after which a revoked key is rejected.
        run: Signs sessions in addition to the secret of all replicas, so that they end with the run of a system.
    """

    def __init__(self, store: NatsApiKeys, now: Callable[[], datetime], read_every: timedelta = KNOWN_FOR, run: str = "") -> None:
        self._store = store
        self.now = now
        self._read_every = read_every
        self._run = run.encode()
        self._keys: dict[KeyId, ApiKey] = {}
        self._secret = b""
        self._reading = asyncio.Lock()
        self._requests = dict[asyncio.Timeout, Caller]()

    @property
    def is_empty(self) -> bool:
        """Whether no key is valid."""
        return not any(map(self._valid, self._keys))

    async def read(self) -> None:
        """Read the keys and the secret of cookies, and end the running requests of callers that are no longer valid."""
        async with self._reading:
            self._keys = {key.key_id: key for key in await self._store.keys()}
            self._secret = self._run + await self._store.cookie_secret()
        for timeout, caller in self._requests.items():
            is_over = caller.session is not None and self._key_of_session(caller.session) is None
            if (is_over or self.holder(caller.key_id) is None) and not timeout.expired():  # a request can end slowly
                timeout.reschedule(0)

    async def follow(self) -> None:
        """Read the keys periodically until cancelled. If they cannot be read, the known keys stay valid."""
        while True:
            await asyncio.sleep(self._read_every.total_seconds())
            try:
                await self.read()
            except UnavailableError as error:
                _log.warning("keys_out_of_reach", error=error.message)

    async def let_in(self, request: HTTPConnection) -> Caller:
        """Return the caller of a request, or raise `UnauthenticatedError`.

        Raises:
            ForbiddenError: The request has a session, changes something, and comes from another site's page.
        """
        authorization = request.headers.get("authorization")
        if authorization is not None:
            scheme, _, key = authorization.partition(" ")
            if scheme.lower() != "bearer":
                raise UnauthenticatedError("The scheme of the Authorization header is not Bearer.", hint=_HOW)
            return await self.holder_of(key)
        cookie = request.cookies.get(COOKIE)
        if cookie is None:
            raise UnauthenticatedError("The request has no key.", hint=_HOW)
        caller = await self.in_session(cookie)
        if request.scope["method"] not in _SAFE and not _is_same_origin(request):
            raise ForbiddenError("A session accepts changes only from this gateway's page.", hint="Programs send a key.")
        return caller

    async def holder_of(self, written: str) -> Caller:
        """Return the holder of a key, or raise `UnauthenticatedError`."""
        try:
            key_id, secret = parse_key(written)
        except InvalidInputError as error:
            raise UnauthenticatedError(error.message, hint=error.hint) from None
        key = await self._find(key_id)
        if key is None or not key.is_shown_by(secret):
            raise UnauthenticatedError("The key is unknown, or has expired.", hint=_HOW)
        return _caller(key)

    async def redeem(self, token: str) -> Caller:
        """Return the holder of the key of a login token, or raise `UnauthenticatedError`. A token is valid once."""
        taken = await self._store.take_token(digest_of_secret(token))
        key = None if taken is None or taken.expires_at <= self.now() else await self._find(taken.key_id)
        if key is None:
            raise UnauthenticatedError("This token was used, or has expired.", hint="`ioa up --web` prints a new one.")
        return _caller(key)

    def begin_session(self, caller: Caller) -> str:
        """Return the cookie of a new session."""
        content = f"{caller.key_id}.{int((self.now() + SESSION).timestamp())}"
        return f"{content}.{self._sign(content)}"

    async def in_session(self, cookie: str) -> Caller:
        """Return the caller of a session, or raise `UnauthenticatedError`."""
        key_id = self._key_of_session(cookie)
        key = None if key_id is None else await self._find(key_id)
        if key is None:
            raise UnauthenticatedError("The session is over.", hint="Sign in with a key or a new token.")
        return _caller(key, cookie)

    def holder(self, key_id: str) -> Caller | None:
        """Return the holder of a key; None if the key is not valid."""
        key = self._valid(KeyId(key_id))
        return None if key is None else _caller(key)

    @asynccontextmanager
    async def cancel_on_revocation(self, caller: Caller) -> AsyncIterator[None]:
        """Cancel the block, a request of a caller, and raise `UnauthenticatedError` when its key or session ends."""
        timeout = fail_after(None)
        try:
            async with timeout:
                self._requests[timeout] = caller
                yield
        except TimeoutError:
            if not timeout.expired():
                raise
            raise UnauthenticatedError("This key was revoked or has expired, or the session is over.", hint=_HOW) from None
        finally:
            del self._requests[timeout]

    def _key_of_session(self, cookie: str) -> KeyId | None:
        """Return the id of a session's key; None if the cookie is not valid."""
        content, _, signature = cookie.rpartition(".")
        if not hmac.compare_digest(signature.encode("utf-8", "replace"), self._sign(content).encode()):
            return None
        key_id, _, expires_at = content.partition(".")
        return KeyId(key_id) if int(expires_at) > self.now().timestamp() else None

    def _sign(self, content: str) -> str:
        return hmac.new(self._secret, content.encode("utf-8", "replace"), hashlib.sha256).hexdigest()

    async def _find(self, key_id: KeyId) -> ApiKey | None:
        """Return a valid key. A key that was created since the last read is looked up."""
        if key_id not in self._keys:
            async with self._reading:
                if (key := await self._store.find(key_id)) is not None:
                    self._keys[key_id] = key
        return self._valid(key_id)

    def _valid(self, key_id: KeyId) -> ApiKey | None:
        key = self._keys.get(key_id)
        return key if key is not None and key.stands(self.now()) else None


def _is_same_origin(request: HTTPConnection) -> bool:
    """Whether a browser sends the request for this gateway's page. Over plain HTTP `check_host` has compared the origin."""
    site = request.headers.get("sec-fetch-site")
    return site == "same-origin" or (site is None and "origin" in request.headers)


def _caller(key: ApiKey, session: str | None = None) -> Caller:
    return Caller(key.key_id, key.user, key.scopes, key.labels, session)
