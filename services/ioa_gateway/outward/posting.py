"""Posting to URLs of strangers: to where a name leads when it is looked up, and nowhere inside of the network that is ours."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import Any, TypeVar
from urllib.parse import SplitResult, urlsplit
from weakref import WeakValueDictionary

import httpcore
import httpx

from ioa.adapters.ssrf import PORTS, addresses_of, lead_outside
from ioa.cancellation import fail_after
from ioa.errors import InvalidInputError, UnavailableError
from ioa.protocol.ids import UserId

T = TypeVar("T")

WITHIN = timedelta(seconds=10)
_USER_AGENT = "ioa"
_MAX_URL_CHARS = 2_000
_LOOKED_UP_AT_ONCE, _OF_A_USER = 8, 2
"""How many names are looked up at a time, and of one user: a name server that does not answer holds a thread for as long as the
system's resolver waits, which nobody can end."""
_HEAD_BYTES, _READ_BYTES = 32_768, 4_096
"""How much is read of an answer before its status is there, and how much at a time. A receiver may send as many interim responses
as it likes before, which are read without a pause: this bounds them to 2,048, and to 256 until others have their turn."""
_ENCRYPTED_BYTES = 262_144
"""How much of TLS is read for that: a chain of certificates has 100 kB at most, and what comes behind the handshake may hold no
byte of an answer, such as new keys, again and again."""


@dataclass(frozen=True)
class Destination:
    """Where a URL leads.

    Attributes:
        url: The same URL with the address in place of the name.
        host: The name, of which the certificate is to be.
        named: The name and the port, as the URL has them.
    """

    url: str
    host: str
    named: str


def check_url(url: str) -> SplitResult:
    """See that a URL can be posted to, as far as it tells by itself.

    Raises:
        InvalidInputError: It cannot.
    """
    hint = "A webhook is like https://example.com/hook."
    # First, since Python writes a host in a normal form to look at it, which takes minutes of a long one of marks in no order.
    if len(url) > _MAX_URL_CHARS or not url.isascii() or not url.isprintable():
        raise InvalidInputError("The URL is none of HTTP.", hint=hint)
    try:
        parts = urlsplit(url)
        parts.port  # noqa: B018 - it is read to see whether it is one
    except ValueError:
        raise InvalidInputError("The URL is none.", hint=hint) from None
    if parts.scheme not in PORTS or not parts.hostname:
        raise InvalidInputError("The URL is none of HTTP.", hint=hint)
    if parts.username is not None or parts.fragment:
        raise InvalidInputError("The URL has a user or a fragment.", hint=hint)
    return parts


_NO_NAME = frozenset({socket.EAI_NONAME, socket.EAI_NODATA})
"""What a look-up says of a name that does not exist, or has no address; whatever else it says is no fault of the name."""


class _Connection(httpcore.AsyncNetworkStream):
    """A connection of which no more is read than the head of one answer may have, little by little.

    Args:
        stream: It.
        most_bytes: How much is read.
    """

    def __init__(self, stream: httpcore.AsyncNetworkStream, most_bytes: int = _HEAD_BYTES) -> None:
        self._stream = stream
        self._most_bytes = most_bytes
        self._read = 0

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        """Read on.

        Raises:
            UnavailableError: There was no status in what has been read.
        """
        if self._read >= self._most_bytes:
            raise UnavailableError(f"The answer had no status within {self._most_bytes:,} bytes.")
        await asyncio.sleep(0)  # what has come already is handed out at once
        data = await self._stream.read(min(max_bytes, _READ_BYTES), timeout)
        self._read += len(data)
        return data

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:
        """Write."""
        await self._stream.write(buffer, timeout)

    async def aclose(self) -> None:
        """Close it."""
        await self._stream.aclose()

    async def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,
    ) -> httpcore.AsyncNetworkStream:
        """Go on encrypted; of what is read then counts what comes, and what is in it."""
        encrypted = _Encrypted(_Connection(self._stream, _ENCRYPTED_BYTES), ssl_context, server_hostname)
        try:
            await encrypted.shake_hands(timeout)
        except BaseException:
            await self.aclose()
            raise
        return _Connection(encrypted)

    def get_extra_info(self, info: str) -> Any:
        """Tell what is known of it."""
        return self._stream.get_extra_info(info)


class _Encrypted(httpcore.AsyncNetworkStream):
    """TLS over a connection, of which each piece is looked through as it is read: httpcore's own reads as much as there is."""

    def __init__(self, stream: httpcore.AsyncNetworkStream, context: ssl.SSLContext, host: str | None) -> None:
        self._stream = stream
        self._come, self._going = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._come, self._going, server_hostname=host)

    async def shake_hands(self, timeout: float | None) -> None:
        """Agree on keys, and see whose certificate it is."""
        await self._until_done(self._tls.do_handshake, timeout)

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        """Read on; nothing at the end."""
        try:
            return await self._until_done(partial(self._tls.read, max_bytes), timeout)
        except (ssl.SSLZeroReturnError, ssl.SSLEOFError):
            return b""

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:
        """Write."""
        await self._until_done(partial(self._tls.write, buffer), timeout)

    async def aclose(self) -> None:
        """Close it."""
        await self._stream.aclose()

    def get_extra_info(self, info: str) -> Any:
        """Tell what is known of it."""
        return self._tls if info == "ssl_object" else self._stream.get_extra_info(info)

    async def _until_done(self, act: Callable[[], T], timeout: float | None) -> T:
        while True:
            done = None
            with suppress(ssl.SSLWantReadError):
                done = (act(),)
            if self._going.pending:
                await self._stream.write(self._going.read(), timeout)
            if done is not None:
                return done[0]
            if data := await self._stream.read(_READ_BYTES, timeout):
                self._come.write(data)
            else:
                self._come.write_eof()


class _Network(httpcore.AnyIOBackend):
    """Connects by TCP."""

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[httpcore.SOCKET_OPTION] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        """Connect."""
        return _Connection(await super().connect_tcp(host, port, timeout, local_address, socket_options))


class Posting:
    """Posts, each over a connection of its own.

    Args:
        http: Over which. It keeps no connection: two names at one address would share one with the first's certificate.
        inside: Whether addresses of private networks and of this machine may be posted to.
        names: Where names are looked up: threads of their own, since a name server may keep each of them waiting.
    """

    def __init__(self, http: httpcore.AsyncConnectionPool, *, inside: bool, names: ThreadPoolExecutor) -> None:
        self._http = http
        self._inside = inside
        self._names = names
        self._places: WeakValueDictionary[UserId, asyncio.Semaphore] = WeakValueDictionary()

    async def find(self, url: str, user: UserId) -> Destination:
        """Look up where a URL leads. Of the user whose it is few are looked up at a time, those that nobody waits for counted in.

        Raises:
            InvalidInputError: To nowhere that may be posted to.
            UnavailableError: No name server tells now.
        """
        parts = check_url(url)
        host, port = parts.hostname or "", parts.port or PORTS[parts.scheme]
        try:
            async with fail_after(WITHIN.total_seconds()):
                addresses = await self._look_up(partial(addresses_of, host, port), user)
        except (UnicodeError, OSError) as error:
            if isinstance(error, UnicodeError) or error.errno in _NO_NAME:
                raise InvalidInputError(f"The name {host} of the URL leads nowhere.", hint="See how it is spelt.") from None
            raise UnavailableError(f"The name {host} of the URL cannot be looked up now.") from None
        if not addresses or not (self._inside or lead_outside(addresses)):
            hint = "IOA_WEBHOOKS_INSIDE=true lets webhooks lead there."
            raise InvalidInputError(f"{host} lies in a private network or on this machine.", hint=hint)
        address = f"[{addresses[0]}]" if ":" in addresses[0] else addresses[0]
        return Destination(parts._replace(netloc=f"{address}:{port}").geturl(), host, parts.netloc)

    async def _look_up(self, look: Callable[[], Sequence[str]], user: UserId) -> Sequence[str]:
        places = self._places.setdefault(user, asyncio.Semaphore(_OF_A_USER))
        await places.acquire()
        looking = asyncio.get_running_loop().run_in_executor(self._names, look)
        looking.add_done_callback(lambda _: places.release())
        return await asyncio.shield(looking)  # it goes on, and holds its place, when nobody waits for it any more

    async def check(self, url: str, user: UserId) -> None:
        """See that a URL may be posted to. A name that nobody tells now is looked up when there is something to post.

        Raises:
            InvalidInputError: It may not, or its name does not exist.
        """
        with suppress(UnavailableError):
            await self.find(url, user)

    async def post(self, url: str, user: UserId, body: bytes, headers: Mapping[str, str]) -> int:
        """Post JSON, and return the status; nothing of the answer is read, and no redirect followed.

        Raises:
            InvalidInputError: The URL leads to nowhere that may be posted to.
            UnavailableError: Nobody has answered in time.
        """
        try:
            async with fail_after(WITHIN.total_seconds()):
                to = await self.find(url, user)
                sent = {**headers, "Host": to.named, "Content-Type": "application/json", "User-Agent": _USER_AGENT}
                extensions = {"sni_hostname": to.host}
                async with self._http.stream(
                    "POST", _escaped(to.url), content=body, headers=[*sent.items()], extensions=extensions
                ) as answer:
                    return answer.status
        except TimeoutError:
            raise UnavailableError(f"Nobody answered within {WITHIN.total_seconds():.0f} s.") from None
        except (httpcore.NetworkError, httpcore.ProtocolError, httpcore.TimeoutException, OSError) as error:
            raise UnavailableError(f"Nobody answered ({type(error).__name__}).") from None


def _context() -> ssl.SSLContext:
    """Offer receivers nothing that costs much: they choose, and a handshake is computed in the event loop.

    What is left out of Python's own list is DHE, whose groups may have 10,000 bits, for which OpenSSL takes 0.6 s. In TLS 1.3 they
    have up to 8,192 (0.1 s), and all servers have to know P-256 (RFC 8446, 9.1).
    """
    context = httpx.create_ssl_context(trust_env=False)
    context.set_ciphers("@SECLEVEL=2:ECDH+AESGCM:ECDH+CHACHA20:ECDH+AES:!aNULL:!eNULL:!aDSS:!SHA1:!AESCCM")
    context.set_ecdh_curve("prime256v1")
    context.options |= ssl.OP_NO_RENEGOTIATION
    return context


def _escaped(url: str) -> httpcore.URL:
    """Write a URL as it goes over the wire, with what may not stand in it escaped."""
    parts = httpx.URL(url)
    return httpcore.URL(scheme=parts.raw_scheme, host=parts.raw_host, port=parts.port, target=parts.raw_path)


@asynccontextmanager
async def open_posting(*, inside: bool) -> AsyncIterator[Posting]:
    """Post for as long as the block.

    Args:
        inside: Whether addresses of private networks and of this machine may be posted to.
    """
    async with httpcore.AsyncConnectionPool(
        _context(), max_connections=None, max_keepalive_connections=0, network_backend=_Network()
    ) as http:
        names = ThreadPoolExecutor(_LOOKED_UP_AT_ONCE, thread_name_prefix="names")
        try:
            yield Posting(http, inside=inside, names=names)
        finally:
            names.shutdown(wait=False, cancel_futures=True)
