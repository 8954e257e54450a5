"""Whether a server takes connections by MPTCP, of which each may have second paths."""

from __future__ import annotations

import socket

_MPTCP, _SOL_MPTCP, _MPTCP_INFO = 262, 284, 1
"""Of Linux (`linux/in.h`, `linux/mptcp.h`); Python has the first since 3.10 where it was built with headers that have it."""


def takes_second_paths(port: int) -> bool:
    """Connect to a server of this machine that speaks first; `False` too where the kernel has no MPTCP."""
    try:
        connection = socket.socket(socket.AF_INET, socket.SOCK_STREAM, _MPTCP)
    except OSError:
        return False
    with connection:
        connection.connect(("127.0.0.1", port))
        connection.recv(1)
        try:
            # A connection that fell back to TCP is asked as one of TCP, which does not know the question.
            connection.getsockopt(_SOL_MPTCP, _MPTCP_INFO, 256)
        except OSError:
            return False
        return True
