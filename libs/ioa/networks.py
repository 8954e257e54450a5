"""For whom an address of the internet counts, where each has so much and no more."""

from __future__ import annotations

import ipaddress
from contextlib import suppress

_IPV6_NETWORK_BITS = 64
"""One holder of addresses has all that begin alike so far."""


def network_of(host: str) -> str:
    """Return for what an address counts: itself, or, of IPv6, the network that one holder has; nothing for what is none."""
    with suppress(ValueError):
        address = ipaddress.ip_address(host.split("%")[0])
        mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
        if isinstance(address, ipaddress.IPv6Address) and mapped is None:
            return str(ipaddress.ip_network((address, _IPV6_NETWORK_BITS), strict=False))
        return str(mapped or address)
    return ""
