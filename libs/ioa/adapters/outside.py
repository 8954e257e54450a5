"""Where names lead, and whether that lies outside of the network that is ours: for what asks servers that strangers have named.

Whose name it is decides where it leads, each time anew: what was looked up is what has to be asked, and not looked up again.
"""

from __future__ import annotations

import asyncio
import ipaddress
import math
import socket
from collections.abc import Sequence
from concurrent.futures import Executor
from contextlib import suppress

import httpx

from ioa.errors import InvalidInputError, UnavailableError

PORTS = {"http": 80, "https": 443}
_MOST_ADDRESSES = 16
"""How many addresses of a name are looked at, of which webhooks are posted to the first. A name server may tell thousands, and
each takes a look at this machine's own, in the event loop."""
_UNICAST = ipaddress.ip_network("2000::/3")
"""All that the internet uses of IPv6. What lies outside of it embeds an address of IPv4, or leads to a network of somebody."""
CLOUDS = (
    *("100.100.100.200/32", "168.63.129.16/32", "169.254.0.0/16", "192.0.0.192/32"),
    *("fd00:42::42/128", "fd00:ec2::/32", "fd20:ce::254/128", "fe80::/10"),
)
"""Where clouds serve their machines, to each its keys: Alibaba, Azure, all by link-local addresses, and Oracle; Scaleway, AWS and
Google. That of Azure is public by its number, and in no registry: it is the same in all regions and clouds
(https://learn.microsoft.com/azure/virtual-network/what-is-ip-address-168-63-129-16). The chart leaves these out of what lies
outside (`networkPolicy.outside`)."""
_SPECIAL = """
    0.0.0.0/8 10.0.0.0/8 100.64.0.0/10 127.0.0.0/8 169.254.0.0/16 172.16.0.0/12 192.0.0.0/24 192.0.2.0/24 192.31.196.0/24
    192.52.193.0/24 192.88.99.0/24 192.168.0.0/16 192.175.48.0/24 198.18.0.0/15 198.51.100.0/24 203.0.113.0/24 224.0.0.0/4
    240.0.0.0/4 2001::/23 2001:db8::/32 2002::/16 2620:4f:8000::/48 3fff::/20
    """.split()
"""What serves no web. Each Python knows the registries of its own day, so they are written here: all that those of special
addresses have (https://www.iana.org/assignments/iana-ipv4-special-registry and …/iana-ipv6-special-registry, within `_UNICAST`;
what they call globally reachable is of protocols, such as anycast relays), and multicast."""
_NOT_OUTSIDE = tuple(ipaddress.ip_network(one) for one in (*_SPECIAL, *CLOUDS))


def is_public(address: str) -> bool:
    """Whether an address lies outside of private networks, however it is written."""
    found = ipaddress.ip_address(address.partition("%")[0])
    if isinstance(found, ipaddress.IPv6Address):
        if found.ipv4_mapped is not None:
            return is_public(str(found.ipv4_mapped))
        if found not in _UNICAST:
            return False
    return found.is_global and not any(found in one for one in _NOT_OUTSIDE)


def is_own(address: str) -> bool:
    """Whether an address is one of this machine's: those alone can be listened at."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with suppress(OSError), socket.socket(family, socket.SOCK_STREAM) as tried:
        tried.bind((address, 0))
        return True
    return False


def addresses_of(host: str, port: int) -> Sequence[str]:
    """Look a name up, in this thread.

    Raises:
        OSError: It does not exist, or no name server tells.
        UnicodeError: It is no name.
    """
    return [str(one[4][0]) for one in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[:_MOST_ADDRESSES]]


def lead_outside(addresses: Sequence[str]) -> bool:
    """Whether there are addresses, and all lie outside of private networks and of this machine."""
    return bool(addresses) and all(is_public(one) and not is_own(one) for one in addresses)


async def places_of(host: str, port: int, names: Executor | None, hint: str) -> Sequence[str]:
    """Look up where a name leads, or give the address that it is: that somebody of ours has written.

    Args:
        host: The name.
        port: The port that is asked.
        names: Where it is looked up; a name server may keep each thread waiting.
        hint: What lets it lead inside.

    Raises:
        InvalidInputError: It leads inside.
        UnavailableError: It leads nowhere, or nobody tells.
    """
    with suppress(ValueError):
        return [str(ipaddress.ip_address(host))]
    try:
        found = await asyncio.get_running_loop().run_in_executor(names, addresses_of, host, port)
    except (OSError, UnicodeError):
        raise UnavailableError(f"The name {host} leads nowhere now.") from None
    if not lead_outside(found):
        raise InvalidInputError(f"{host} leads into a private network or to this machine.", hint=hint)
    return found


class OutsideTransport(httpx.AsyncBaseTransport):
    """Sends each request to the address to which its name leads as it is sent, if that lies outside.

    It is for one site: two names at one address would share a connection, with the first's certificate. Of several addresses each
    has a share of the time in which a connection has to be made, since a network may drop what is sent to some, and the one that
    answered last comes first.

    Args:
        names: Where names are looked up.
        hint: What lets them lead inside.
        over: How requests are sent.
    """

    def __init__(self, names: Executor | None, hint: str, over: httpx.AsyncBaseTransport | None = None) -> None:
        self._names = names
        self._hint = hint
        self._over = over or httpx.AsyncHTTPTransport()
        self._answered = ""

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send a request, under its name.

        Raises:
            InvalidInputError: Its name leads inside.
            UnavailableError: It leads nowhere.
            ConnectError: Nobody answers at any of its addresses.
            ConnectTimeout: Nobody has answered at any of them in time.
        """
        host, port = request.url.host, request.url.port or PORTS[request.url.scheme]
        found = await places_of(host, port, self._names, self._hint)
        *others, last = sorted(found, key=lambda one: one == self._answered, reverse=True)
        now = asyncio.get_running_loop().time
        longest = request.extensions.get("timeout", {}).get("connect")
        until = math.inf if longest is None else now() + longest
        for index, place in enumerate(others):
            with suppress(httpx.ConnectError, httpx.ConnectTimeout):
                return await self._ask(place, request, (until - now()) / (len(found) - index))
        return await self._ask(last, request, until - now())

    async def _ask(self, place: str, request: httpx.Request, within: float) -> httpx.Response:
        answer = await self._over.handle_async_request(_sent_to(place, request, within))
        self._answered = place
        return answer

    async def aclose(self) -> None:
        """Close what it has open."""
        await self._over.aclose()


def _sent_to(place: str, request: httpx.Request, within: float) -> httpx.Request:
    timeout = {**request.extensions.get("timeout", {}), "connect": None if within == math.inf else max(0.0, within)}
    extensions = {**request.extensions, "timeout": timeout, "sni_hostname": request.url.host}
    url = request.url.copy_with(host=place)
    return httpx.Request(request.method, url, headers=request.headers, stream=request.stream, extensions=extensions)
