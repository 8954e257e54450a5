"""Asking Linux what programs have read of their TCP connections, as `ss -ti` does: by `sock_diag(7)`, without any rights.

The kernel tells of the network namespace of who asks, and nothing of others. Its answer is read as `linux/inet_diag.h` and
`linux/tcp.h` have it, which only ever grow at their ends.
"""

from __future__ import annotations

import asyncio
import os
import socket
import struct
from collections.abc import Iterator, Sequence
from contextlib import suppress
from ipaddress import IPv6Address, ip_address

from ioa.errors import UnavailableError
from ioa.ports.sockets import Peer, SocketRead

_NETLINK, _SOCK_DIAG = 16, 4
_BY_FAMILY, _ERROR, _DONE = 20, 2, 3
_REQUEST_DUMP = 0x301
_INFO = 2
_OPEN = 1 << 1 | 1 << 8
"""Connections that stand, and those whose other end will send no more, of which there may be something left to read."""
_HEAD, _ATTRIBUTE = struct.Struct("=IHHII"), struct.Struct("=HH")
_ASKED = struct.Struct("=BBBxI2s46x")
_SOCKET = struct.Struct("=BBBB2s2s16s16sIQII")
"""`struct inet_diag_msg` up to `idiag_rqueue`, which is what has come and was not read yet."""
_SOCKET_BYTES = 72
_RECEIVED_AT, _COUNT = 128, struct.Struct("=Q")
"""Where `tcpi_bytes_received` stands in `struct tcp_info` (Linux 4.1)."""
_CODE = struct.Struct("=i")
"""What has failed, less than nothing, or nothing: the end of an answer tells it too, as where the kernel has no module for TCP."""
_ANSWER_BYTES = 1 << 18
_PATIENCE_SECONDS = 2.0


class KernelSockets:
    """The connections of this process's network namespace, as `Sockets`."""

    async def read_at(self, port: int) -> Sequence[SocketRead]:
        """Ask in a thread: the kernel walks all connections of the machine for it."""
        return await asyncio.to_thread(_read_at, port)


def same_peer(host: str, port: int) -> Peer:
    """Write who is at the other end of a connection in the one way in which it is compared.

    Raises:
        ValueError: It is no address.
    """
    address = ip_address(host.partition("%")[0])
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return Peer(str(mapped or address), port)


def _read_at(port: int) -> Sequence[SocketRead]:
    try:
        with socket.socket(_NETLINK, socket.SOCK_DGRAM, _SOCK_DIAG) as asking:
            asking.settimeout(_PATIENCE_SECONDS)
            return [one for family in (socket.AF_INET, socket.AF_INET6) for one in _asked(asking, family, port)]
    except (OSError, struct.error) as error:
        raise UnavailableError(f"The kernel does not tell of TCP connections: {error}.") from None


def _asked(asking: socket.socket, family: int, port: int) -> Iterator[SocketRead]:
    wanted = _ASKED.pack(family, socket.IPPROTO_TCP, 1 << (_INFO - 1), _OPEN, port.to_bytes(2, "big"))
    asking.sendto(_HEAD.pack(_HEAD.size + len(wanted), _BY_FAMILY, _REQUEST_DUMP, 0, 0) + wanted, (0, 0))
    while True:
        answer = memoryview(asking.recv(_ANSWER_BYTES))
        while answer:
            size, kind, *_ = _HEAD.unpack_from(answer)
            if kind in (_ERROR, _DONE):
                if code := -_CODE.unpack_from(answer, _HEAD.size)[0]:
                    raise OSError(code, os.strerror(code))
                return
            if (read := _parsed(answer[_HEAD.size : size])) is not None:
                yield read
            answer = answer[_aligned(max(size, _HEAD.size)) :]


def _parsed(told: memoryview) -> SocketRead | None:
    """Read one connection off an answer; None where the kernel counts nothing of it."""
    family, _, _, _, _, port, _, host, _, cookie, _, unread = _SOCKET.unpack_from(told)
    attributes = told[_SOCKET_BYTES:]
    while len(attributes) >= _ATTRIBUTE.size:
        size, kind = _ATTRIBUTE.unpack_from(attributes)
        if kind == _INFO and size >= _ATTRIBUTE.size + _RECEIVED_AT + _COUNT.size:
            received = _COUNT.unpack_from(attributes, _ATTRIBUTE.size + _RECEIVED_AT)[0]
            shown = socket.inet_ntop(family, host[:4] if family == socket.AF_INET else host)
            with suppress(ValueError):
                return SocketRead(cookie, same_peer(shown, int.from_bytes(port, "big")), received - unread)
        attributes = attributes[_aligned(max(size, _ATTRIBUTE.size)) :]
    return None


def _aligned(size: int) -> int:
    return size + 3 & ~3
