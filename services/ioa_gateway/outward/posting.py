"""Posting to URLs of strangers: to where a name leads when it is looked up, and nowhere inside of the network that is ours."""

from __future__ import annotations

import asyncio
import ipaddress
import socket
from collections.abc import AsyncIterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from urllib.parse import SplitResult, urlsplit

import httpx

from ioa.errors import InvalidInputError, UnavailableError

WITHIN = timedelta(seconds=10)
_PORTS = {"http": 80, "https": 443}
_MAX_URL_CHARS = 2_000
_LOOKED_UP_AT_ONCE = 8
_UNICAST = ipaddress.ip_network("2000::/3")
"""All that the internet uses of IPv6. What lies outside of it embeds an address of IPv4, or leads to a network of somebody."""
_NOT_OUTSIDE = ipaddress.ip_address("168.63.129.16")
"""Public by its number, and yet inside: Azure serves each of its machines there, by the same address in all regions and clouds
(https://learn.microsoft.com/azure/virtual-network/what-is-ip-address-168-63-129-16). It is of no class of special addresses
(RFC 6890), so that no rule by class refuses it."""


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
    try:
        parts = urlsplit(url)
        parts.port  # noqa: B018 - it is read to see whether it is one
    except ValueError:
        raise InvalidInputError("The URL is none.", hint=hint) from None
    if parts.scheme not in _PORTS or not parts.hostname or len(url) > _MAX_URL_CHARS or not url.isascii() or not url.isprintable():
        raise InvalidInputError("The URL is none of HTTP.", hint=hint)
    if parts.username is not None or parts.fragment:
        raise InvalidInputError("The URL has a user or a fragment.", hint=hint)
    return parts


def is_public(address: str) -> bool:
    """Whether an address lies outside of private networks, however it is written."""
    found = ipaddress.ip_address(address.partition("%")[0])
    if isinstance(found, ipaddress.IPv6Address):
        if found.ipv4_mapped is not None:
            return is_public(str(found.ipv4_mapped))
        # Of those that tunnel to an address of IPv4, nobody tells webhooks anything.
        return found in _UNICAST and found.is_global and found.sixtofour is None and found.teredo is None
    return found.is_global and not found.is_multicast and found != _NOT_OUTSIDE


def _is_own(address: str) -> bool:
    """Whether an address is one of this machine's: those alone can be listened at."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with suppress(OSError), socket.socket(family, socket.SOCK_STREAM) as tried:
        tried.bind((address, 0))
        return True
    return False


_NO_NAME = frozenset({socket.EAI_NONAME, socket.EAI_NODATA})
"""What a look-up says of a name that does not exist, or has no address; whatever else it says is no fault of the name."""


class Posting:
    """Posts, each over a connection of its own.

    Args:
        http: Over which.
        inside: Whether addresses of private networks and of this machine may be posted to.
        names: Where names are looked up: threads of their own, since a name server may keep each of them waiting.
    """

    def __init__(self, http: httpx.AsyncClient, *, inside: bool, names: ThreadPoolExecutor) -> None:
        self._http = http
        self._inside = inside
        self._names = names

    async def find(self, url: str) -> Destination:
        """Look up where a URL leads.

        Raises:
            InvalidInputError: To nowhere that may be posted to.
            UnavailableError: No name server tells now.
        """
        parts = check_url(url)
        host, port = parts.hostname or "", parts.port or _PORTS[parts.scheme]
        try:
            async with asyncio.timeout(WITHIN.total_seconds()):
                look = partial(socket.getaddrinfo, host, port, type=socket.SOCK_STREAM)
                found = await asyncio.get_running_loop().run_in_executor(self._names, look)
        except (UnicodeError, OSError) as error:
            if isinstance(error, UnicodeError) or error.errno in _NO_NAME:
                raise InvalidInputError(f"The name {host} of the URL leads nowhere.", hint="See how it is spelt.") from None
            raise UnavailableError(f"The name {host} of the URL cannot be looked up now.") from None
        addresses = [str(one[4][0]) for one in found]
        if not addresses or not (self._inside or all(is_public(one) and not _is_own(one) for one in addresses)):
            hint = "IOA_WEBHOOKS_INSIDE=true lets webhooks lead there."
            raise InvalidInputError(f"{host} lies in a private network or on this machine.", hint=hint)
        address = f"[{addresses[0]}]" if ":" in addresses[0] else addresses[0]
        return Destination(parts._replace(netloc=f"{address}:{port}").geturl(), host, parts.netloc)

    async def check(self, url: str) -> None:
        """See that a URL may be posted to. A name that nobody tells now is looked up when there is something to post.

        Raises:
            InvalidInputError: It may not, or its name does not exist.
        """
        with suppress(UnavailableError):
            await self.find(url)

    async def post(self, url: str, body: bytes, headers: Mapping[str, str]) -> int:
        """Post JSON, and return the status; nothing of the answer is read, and no redirect followed.

        Raises:
            InvalidInputError: The URL leads to nowhere that may be posted to.
            UnavailableError: Nobody has answered in time.
        """
        try:
            async with asyncio.timeout(WITHIN.total_seconds()):
                to = await self.find(url)
                sent = {**headers, "Host": to.named, "Content-Type": "application/json"}
                extensions = {"sni_hostname": to.host}
                async with self._http.stream("POST", to.url, content=body, headers=sent, extensions=extensions) as answer:
                    return answer.status_code
        except TimeoutError:
            raise UnavailableError(f"Nobody answered within {WITHIN.total_seconds():.0f} s.") from None
        except httpx.HTTPError as error:
            raise UnavailableError(f"Nobody answered ({type(error).__name__}).") from None


@asynccontextmanager
async def open_posting(*, inside: bool) -> AsyncIterator[Posting]:
    """Post for as long as the block.

    Args:
        inside: Whether addresses of private networks and of this machine may be posted to.
    """
    # Connections are not kept: two names at one address would share one, whose certificate is that of the first.
    limits = httpx.Limits(max_keepalive_connections=0)
    async with httpx.AsyncClient(follow_redirects=False, trust_env=False, limits=limits, timeout=None) as http:  # noqa: S113
        names = ThreadPoolExecutor(_LOOKED_UP_AT_ONCE, thread_name_prefix="names")
        try:
            yield Posting(http, inside=inside, names=names)
        finally:
            names.shutdown(wait=False, cancel_futures=True)
