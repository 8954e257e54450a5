"""SSRF protection: resolves host names and rejects addresses that are not public.

A host name may lead to another address at each lookup. Therefore a request is sent to the address that was checked.
"""

from __future__ import annotations

import asyncio
import ipaddress
import socket
from collections.abc import Sequence
from contextlib import suppress

import httpx

from ioa.errors import InvalidInputError, UnavailableError

PORTS = {"http": 80, "https": 443}
_MAX_ADDRESSES = 16
"""Maximum addresses of a name that are checked. A name server may return thousands."""
_UNICAST = ipaddress.ip_network("2000::/3")
"""All of IPv6 that the internet uses. Other addresses embed one of IPv4, or belong to private networks."""
CLOUDS = (
    *("100.100.100.200/32", "168.63.129.16/32", "169.254.0.0/16", "192.0.0.192/32"),
    *("fd00:42::42/128", "fd00:ec2::/32", "fd20:ce::254/128", "fe80::/10"),
)
"""Metadata services of clouds, which contain keys of the machine: Alibaba, Azure, all by link-local addresses, Oracle; Scaleway,
AWS and Google. The address of Azure is the same in all regions, and public by its number
(https://learn.microsoft.com/azure/virtual-network/what-is-ip-address-168-63-129-16). The chart excludes these from
`networkPolicy.outside`."""
_SPECIAL = """
    0.0.0.0/8 10.0.0.0/8 100.64.0.0/10 127.0.0.0/8 169.254.0.0/16 172.16.0.0/12 192.0.0.0/24 192.0.2.0/24 192.31.196.0/24
    192.52.193.0/24 192.88.99.0/24 192.168.0.0/16 192.175.48.0/24 198.18.0.0/15 198.51.100.0/24 203.0.113.0/24 224.0.0.0/4
    240.0.0.0/4 2001::/23 2001:db8::/32 2002::/16 2620:4f:8000::/48 3fff::/20
    """.split()
"""Special addresses and multicast (https://www.iana.org/assignments/iana-ipv4-special-registry and …/iana-ipv6-special-registry).
A Python contains the registries of its release date."""
_NOT_PUBLIC = tuple(ipaddress.ip_network(one) for one in (*_SPECIAL, *CLOUDS))


def is_public(address: str) -> bool:
    """Return whether an address is outside of private networks, in any notation."""
    found = ipaddress.ip_address(address.partition("%")[0])
    if isinstance(found, ipaddress.IPv6Address):
        if found.ipv4_mapped is not None:
            return is_public(str(found.ipv4_mapped))
        if found not in _UNICAST:
            return False
    return found.is_global and not any(found in one for one in _NOT_PUBLIC)


def is_own(address: str) -> bool:
    """Return whether an address belongs to this machine. A socket can be bound only to such an address."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with suppress(OSError), socket.socket(family, socket.SOCK_STREAM) as tried:
        tried.bind((address, 0))
        return True
    return False


def addresses_of(host: str, port: int) -> Sequence[str]:
    """Resolve a name; this blocks.

    Raises:
        OSError: The name does not exist, or no name server answers.
        UnicodeError: It is not a name.
    """
    return [str(one[4][0]) for one in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[:_MAX_ADDRESSES]]


def lead_outside(addresses: Sequence[str]) -> bool:
    """Return whether there are addresses, and all of them are public and not of this machine."""
    return bool(addresses) and all(is_public(one) and not is_own(one) for one in addresses)


async def resolve_public(host: str, port: int, hint: str) -> Sequence[str]:
    """Resolve a name to public addresses.

    Args:
        host: The name, or an address.
        port: The port of the request.
        hint: How to permit other addresses.

    Raises:
        InvalidInputError: An address is not public.
        UnavailableError: The name cannot be resolved.
    """
    try:
        found = await asyncio.to_thread(addresses_of, host, port)
    except (OSError, UnicodeError):
        raise UnavailableError(f"The name {host} leads nowhere now.") from None
    if not lead_outside(found):
        raise InvalidInputError(f"{host} leads into a private network or to this machine.", hint=hint)
    return found


class OutsideTransport(httpx.AsyncBaseTransport):
    """Sends each request to a public address of its host, and tries the next address if a connection fails.

    It is for one site: two names of one address would share a connection, with the certificate of the first.

    Args:
        hint: How to permit other addresses.
        over: The transport that sends requests.
    """

    def __init__(self, hint: str, over: httpx.AsyncBaseTransport | None = None) -> None:
        self._hint = hint
        self._over = over or httpx.AsyncHTTPTransport()

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send a request with its own host name.

        Raises:
            InvalidInputError: An address of its host is not public.
            UnavailableError: Its host cannot be resolved.
            ConnectError: No address accepts a connection.
            ConnectTimeout: The last address does not accept a connection in time.
        """
        host, port = request.url.host, request.url.port or PORTS[request.url.scheme]
        *others, last = await resolve_public(host, port, self._hint)
        for place in others:
            with suppress(httpx.ConnectError, httpx.ConnectTimeout):
                return await self._over.handle_async_request(_sent_to(place, request))
        return await self._over.handle_async_request(_sent_to(last, request))

    async def aclose(self) -> None:
        """Close the connections."""
        await self._over.aclose()


def _sent_to(place: str, request: httpx.Request) -> httpx.Request:
    extensions = {**request.extensions, "sni_hostname": request.url.host}
    url = request.url.copy_with(host=place)
    return httpx.Request(request.method, url, headers=request.headers, stream=request.stream, extensions=extensions)
