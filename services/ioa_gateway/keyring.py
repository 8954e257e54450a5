"""Who is let in: by a key, or by the cookie of a browser that has shown one. Keys are kept elsewhere, and known here for seconds.

A session is no record anywhere: its cookie says for which key and until when, under a seal that every replica knows. It ends with
the key, too, and on one machine with the run of its system: whoever has taken its port when that was down was sent the cookie.
Only sessions that ended early are recorded. A cookie is valid only below the path of its session.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

import structlog
from starlette.requests import HTTPConnection

from ioa.adapters.nats.stores.api_keys import NatsApiKeys
from ioa.errors import ForbiddenError, InvalidInputError, RateLimitedError, UnauthenticatedError, UnavailableError
from ioa.protocol.api_keys import KNOWN_FOR, ApiKey, KeyId, Scope, SignedOut, digest_of_secret, parse_key, people_of
from ioa_gateway.callers import Caller
from ioa_gateway.sessions import BrowserSession, session_in

SESSION = timedelta(days=7)

_MOST_WAITING = 100
"""How many requests may wait until it is looked for their keys: each holds a connection, and such a key costs nothing to invent."""

_SAFE = ("GET", "HEAD")
_PARTS = 3
_UNTIL = re.compile(r"[1-9][0-9]{0,14}")
_MS = 1_000
_HOW = "Send `Authorization: Bearer ioa_…`; `ioa keys create` makes a key."

_log = structlog.get_logger(__name__)


class _Sealed(NamedTuple):
    key_id: KeyId
    until: int


class Keyring:
    """Tells who asks.

    Args:
        store: Where the keys are.
        now: The time.
        known_for: After how long a key that was revoked lets nobody in any more.
        looked_up_every: How often it is looked for keys because somebody has shown one that is not known. It may be just made, so
            that whoever shows it waits for that.
        run: What sessions are sealed with besides the secret of all replicas: those of another run are over.
    """

    def __init__(
        self,
        store: NatsApiKeys,
        now: Callable[[], datetime],
        known_for: timedelta = KNOWN_FOR,
        looked_up_every: timedelta = timedelta(seconds=1),
        run: str = "",
    ) -> None:
        self._store = store
        self.now = now
        self._known_for = known_for
        self._looked_up_every = looked_up_every
        self._run = run.encode()
        self._keys: dict[KeyId, ApiKey] = {}
        self._signed_out: dict[KeyId, SignedOut] = {}
        self._read_at = datetime.fromtimestamp(0, UTC)
        self._secret = b""
        self._reading = asyncio.Lock()
        self._waiting = 0
        self._looked = asyncio.Event()
        """Set at the next look, for all who wait for that."""

    @property
    def is_empty(self) -> bool:
        """Whether nobody can be let in."""
        return not any(key.stands(self.now()) for key in self._keys.values())

    async def open(self) -> None:
        """Read the keys, and what cookies are sealed with.

        Raises:
            UnavailableError: They cannot be read now.
        """
        await self._read()

    async def follow(self, tell: Callable[[], None]) -> None:
        """Keep up with the keys for ever; while they cannot be read, those that were known stay.

        Args:
            tell: Called after each look.
        """
        while True:
            await asyncio.sleep(self._known_for.total_seconds())
            try:
                await self._read()
            except UnavailableError as error:
                _log.warning("keys_out_of_reach", error=error.message)
            tell()
            looked, self._looked = self._looked, asyncio.Event()
            looked.set()

    async def let_in(self, request: HTTPConnection) -> Caller:
        """Tell who asks.

        Raises:
            UnauthenticatedError: Nobody says so, or by a key that is none, has expired or was revoked.
            RateLimitedError: The key is not known, and very many such keys are shown.
            ForbiddenError: A page that may not do so asks for something to be done.
        """
        written = request.headers.get("authorization")
        if written is not None:
            kind, _, shown = written.partition(" ")
            if kind.lower() != "bearer":
                raise UnauthenticatedError("Authorization is of a kind that is not known here.", hint=_HOW)
            return await self.holder_of(shown)
        session = session_in(request)
        if session is None:
            raise UnauthenticatedError("Nobody says who asks.", hint=_HOW)
        caller = await self.in_session(session)
        if request.scope["method"] not in _SAFE and not _is_of_our_page(request):
            raise ForbiddenError("A session does nothing for another page.", hint="Programs send a key.")
        return caller

    async def holder_of(self, shown: str) -> Caller:
        """Tell who shows a key.

        Raises:
            UnauthenticatedError: It lets nobody in.
            RateLimitedError: It is not known, and very many such keys are shown.
        """
        try:
            key_id, secret = parse_key(shown)
        except InvalidInputError as error:
            raise UnauthenticatedError(error.message, hint=error.hint) from None
        key = await self._find(key_id)
        if key is None or not key.is_shown_by(secret):
            raise UnauthenticatedError("This key lets nobody in: there is none like it, or it has expired.", hint=_HOW)
        return _caller(key)

    async def redeem(self, token: str) -> Caller:
        """Tell for whom a token lets in, which it does once.

        Raises:
            UnauthenticatedError: It was used already, has expired, or never was one.
            UnavailableError: That cannot be read now.
        """
        taken = await self._store.take_token(digest_of_secret(token))
        key = None if taken is None or taken.expires_at <= self.now() else await self._find(taken.key_id, may_be_made_up=False)
        if key is None:
            raise UnauthenticatedError("This token was used, or has expired.", hint="`ioa up --web` prints a new one.")
        return _caller(key)

    def stands(self, caller: Caller) -> bool:
        """Whether somebody who was let in still would be."""
        goes_on = caller.session is None or self._sealed(caller.session) is not None
        return goes_on and self.lets_in(caller.key_id)

    def lets_in(self, key_id: str) -> bool:
        """Whether a key lets anybody in, as the keys were read last: of one that was just made that may not be known."""
        key = self._keys.get(KeyId(key_id))
        return key is not None and key.stands(self.now())

    def holder(self, key_id: str) -> Caller | None:
        """Tell who holds a key; None where it lets nobody in."""
        return _caller(self._keys[KeyId(key_id)]) if self.lets_in(key_id) else None

    def check(self, caller: Caller) -> None:
        """See that somebody who was let in still would be.

        Raises:
            UnauthenticatedError: His key was revoked since, or has expired, or his session is over.
        """
        if not self.lets_in(caller.key_id):
            raise UnauthenticatedError("This key lets nobody in any more: it was revoked, or has expired.", hint=_HOW)
        if not self.stands(caller):
            raise _over()

    async def watch(self, caller: Caller) -> None:
        """Check a caller for ever, at each look of `follow`.

        Raises:
            UnauthenticatedError: His key was revoked since, or has expired, or his session is over.
        """
        while True:
            self.check(caller)
            await self._looked.wait()

    def session_of(self, caller: Caller) -> BrowserSession:
        """Begin a session."""
        until = str(int((self.now() + SESSION).timestamp() * _MS))
        cookie = f"{caller.key_id}.{until}.{self._seal(caller.key_id, until)}"
        return BrowserSession(cookie, self._place(caller.key_id, until))

    async def in_session(self, session: BrowserSession) -> Caller:
        """Tell whose session it is.

        Raises:
            UnauthenticatedError: Nobody's, or it is over.
            RateLimitedError: Its key is not known, and very many such keys are shown.
        """
        sealed = self._sealed(session)
        key = None if sealed is None else await self._find(sealed.key_id)
        if key is None:
            raise _over()
        return _caller(key, session)

    async def sign_out(self, session: BrowserSession) -> None:
        """End a session for good: here at once, at other replicas when they read the keys, and with all that goes on by it.

        Raises:
            UnavailableError: That cannot be kept now.
        """
        sealed = self._sealed(session)
        if sealed is not None:
            async with self._reading:  # what was read before would let it in again
                self._signed_out[sealed.key_id] = await self._store.sign_out(sealed.key_id, sealed.until, self.now())

    def _sealed(self, session: BrowserSession) -> _Sealed | None:
        """Read what a session says; None where it is none of ours, or over."""
        key_id, until, seal = (session.cookie.split(".") + [""] * _PARTS)[:_PARTS]
        # What is sealed is what is read: the text itself, of one form alone.
        if not _UNTIL.fullmatch(until):
            return None
        shown, known = f"{seal}.{session.place}", f"{self._seal(key_id, until)}.{self._place(key_id, until)}"
        if not hmac.compare_digest(shown.encode(), known.encode()):
            return None
        sealed = _Sealed(KeyId(key_id), int(until))
        return sealed if self._goes_on(*sealed) else None

    def _goes_on(self, key_id: KeyId, until: int) -> bool:
        signed_out = self._signed_out.get(key_id)
        return until > self.now().timestamp() * _MS and not (signed_out is not None and signed_out.holds(until))

    def _place(self, key_id: str, until: str) -> str:
        """Where a session is: not to be guessed, nor told by its seal, since no key's id is empty."""
        return self._seal("", f"{key_id}.{until}")[:32]

    def _seal(self, key_id: str, until: str) -> str:
        return hmac.new(self._secret, f"{key_id}.{until}".encode("utf-8", "replace"), hashlib.sha256).hexdigest()

    async def _find(self, key_id: KeyId, *, may_be_made_up: bool = True) -> ApiKey | None:
        if key_id not in self._keys:
            if may_be_made_up and self._waiting >= _MOST_WAITING:
                raise RateLimitedError(
                    "This key is not known, and very many such keys are shown.", retry_after=self._looked_up_every
                )
            await self._look_up()
        return self._standing(key_id)

    def _standing(self, key_id: KeyId) -> ApiKey | None:
        key = self._keys.get(key_id)
        return key if key is not None and key.stands(self.now()) else None

    async def _look_up(self) -> None:
        """Read the keys as they are from now on, as soon as it is time for that."""
        self._waiting += 1
        try:
            asked = self.now()
            await asyncio.sleep((self._read_at + self._looked_up_every - asked).total_seconds())
            await self._read(behind=asked)
        finally:
            self._waiting -= 1

    async def _read(self, behind: datetime | None = None) -> None:
        """Read the keys, unless that was begun behind a time."""
        async with self._reading:
            if behind is None or self._read_at <= behind:
                begun = self.now()
                self._signed_out = {one.key_id: one for one in await self._store.signed_out()}
                self._keys = {key.key_id: key for key in await self._store.keys()}
                # Last, since it may have to be drawn: by another one an admin ends all sessions.
                self._secret = self._run + await self._store.cookie_secret()
                self._read_at = begun


def _is_of_our_page(request: HTTPConnection) -> bool:
    """Whether a browser says that a page of ours asks: over plain HTTP only by the origin, which the guard has compared."""
    site = request.headers.get("sec-fetch-site")
    return site == "same-origin" or (site is None and "origin" in request.headers)


def _over() -> UnauthenticatedError:
    return UnauthenticatedError("The session is over.", hint="Show a key, or a new token.")


def _caller(key: ApiKey, session: BrowserSession | None = None) -> Caller:
    scopes = frozenset(scope for scope in Scope if scope in key.scopes)
    return Caller(key.key_id, key.user, scopes, key.labels, people_of(key.scopes), session)
