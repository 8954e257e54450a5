"""Posts to URLs of strangers: to public addresses only, unless addresses of private networks are allowed."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from http.cookiejar import CookieJar, DefaultCookiePolicy
from urllib.parse import SplitResult, urlsplit
from weakref import WeakValueDictionary

import httpx

from ioa.adapters.http_answers import create_client
from ioa.adapters.ssrf import PORTS, addresses_of, lead_outside
from ioa.cancellation import fail_after
from ioa.errors import InvalidInputError, UnavailableError
from ioa.protocol.ids import UserId

WITHIN = timedelta(seconds=10)
_MAX_URL_CHARS = 2_000
_LOOKUPS, _LOOKUPS_OF_USER = 8, 2
"""Maximum concurrent lookups of names: a name server that does not answer holds a thread until the system's timeout."""
_NO_NAME = frozenset({socket.EAI_NONAME, socket.EAI_NODATA})
"""Errors of a lookup for a name that does not exist, or has no address."""


@dataclass(frozen=True)
class Destination:
    """The destination of a URL.

    Attributes:
        url: The URL with the address in place of the name.
        host: The name, for which the certificate must be valid.
        named: The name and the port, as the URL contains them.
    """

    url: str
    host: str
    named: str


def check_url(url: str) -> SplitResult:
    """Check that a URL can be posted to, without a lookup, or raise `InvalidInputError`."""
    hint = "A webhook is like https://example.com/hook."
    # First, since Python normalises a host when it parses a URL, which takes minutes for a long host of combining marks.
    if len(url) > _MAX_URL_CHARS or not url.isascii() or not url.isprintable():
        raise InvalidInputError("The URL is not valid.", hint=hint)
    try:
        parts = urlsplit(url)
        parts.port  # noqa: B018 - raises if it is no number
    except ValueError:
        raise InvalidInputError("The URL is not valid.", hint=hint) from None
    if parts.scheme not in PORTS or not parts.hostname:
        raise InvalidInputError("The URL is not a URL of HTTP.", hint=hint)
    if parts.username is not None or parts.fragment:
        raise InvalidInputError("The URL contains a user or a fragment.", hint=hint)
    return parts


class Posting:
    """Posts, each over its own connection.

    Args:
        http: The client. It keeps no connection: two names at one address would share one with the first name's certificate.
        inside: Whether addresses of private networks and of this machine are allowed.
        names: Threads that look up names.
    """

    def __init__(self, http: httpx.AsyncClient, *, inside: bool, names: ThreadPoolExecutor) -> None:
        self._http = http
        self._inside = inside
        self._names = names
        self._lookups: WeakValueDictionary[UserId, asyncio.Semaphore] = WeakValueDictionary()

    async def find(self, url: str, user: UserId) -> Destination:
        """Look up the destination of a URL.

        Raises:
            InvalidInputError: The URL is not valid, or its destination is not allowed.
            UnavailableError: No name server answers.
        """
        parts = check_url(url)
        host, port = parts.hostname or "", parts.port or PORTS[parts.scheme]
        try:
            async with fail_after(WITHIN.total_seconds()):
                addresses = await self._look_up(partial(addresses_of, host, port), user)
        except (UnicodeError, OSError) as error:
            if isinstance(error, UnicodeError) or error.errno in _NO_NAME:
                raise InvalidInputError(f"The name {host} of the URL does not exist.", hint="Check its spelling.") from None
            raise UnavailableError(f"The name {host} of the URL cannot be looked up now.") from None
        if not addresses or not (self._inside or lead_outside(addresses)):
            hint = "IOA_WEBHOOKS_INSIDE=true allows it."
            raise InvalidInputError(f"{host} is in a private network or on this machine.", hint=hint)
        address = f"[{addresses[0]}]" if ":" in addresses[0] else addresses[0]
        return Destination(parts._replace(netloc=f"{address}:{port}").geturl(), host, parts.netloc)

    async def _look_up(self, look: Callable[[], Sequence[str]], user: UserId) -> Sequence[str]:
        lookups = self._lookups.setdefault(user, asyncio.Semaphore(_LOOKUPS_OF_USER))
        await lookups.acquire()
        looking = asyncio.get_running_loop().run_in_executor(self._names, look)
        looking.add_done_callback(lambda _: lookups.release())
        return await asyncio.shield(looking)  # the thread runs on after a cancellation

    async def check(self, url: str, user: UserId) -> None:
        """Check that a URL may be posted to, or raise `InvalidInputError`. If no name server answers, the first post decides."""
        with suppress(UnavailableError):
            await self.find(url, user)

    async def post(self, url: str, user: UserId, body: bytes, headers: Mapping[str, str]) -> int:
        """Post JSON, and return the status; the body of the response is not read, and no redirect is followed.

        Raises:
            InvalidInputError: The destination is not allowed.
            UnavailableError: No response arrived in time.
        """
        try:
            async with fail_after(WITHIN.total_seconds()):
                to = await self.find(url, user)
                sent = {**headers, "Host": to.named, "Content-Type": "application/json", "User-Agent": "ioa"}
                extensions = {"sni_hostname": to.host}
                async with self._http.stream("POST", to.url, content=body, headers=sent, extensions=extensions) as response:
                    return response.status_code
        except TimeoutError:
            raise UnavailableError(f"No response arrived within {WITHIN.total_seconds():.0f} s.") from None
        except (httpx.HTTPError, OSError) as error:
            raise UnavailableError(f"No response arrived ({type(error).__name__}).") from None


@asynccontextmanager
async def open_posting(*, inside: bool) -> AsyncIterator[Posting]:
    """Yield a `Posting`; `inside`: whether addresses of private networks and of this machine are allowed."""
    limits, timeout = httpx.Limits(max_connections=None, max_keepalive_connections=0), WITHIN.total_seconds()
    cookies = CookieJar(DefaultCookiePolicy(allowed_domains=()))  # stores none
    async with create_client(trust_env=False, timeout=timeout, limits=limits, cookies=cookies) as http:
        names = ThreadPoolExecutor(_LOOKUPS, thread_name_prefix="names")
        try:
            yield Posting(http, inside=inside, names=names)
        finally:
            names.shutdown(wait=False, cancel_futures=True)
