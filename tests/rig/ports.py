"""Ports for processes that are told where to listen: held for as long as they are needed, so that nothing else gets them."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager


@contextmanager
def held_ports(count: int) -> Iterator[list[int]]:
    """Hold ports of this machine while the block runs, and yield them.

    A port that was only looked up is free again at once, and the kernel gives it to the next connection or server. These are taken
    without anybody listening: the kernel gives such a port to nobody, and lets whoever names it listen there, as often as he is
    started again, as long as both set `SO_REUSEADDR`, which servers do.
    """
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for one in sockets:
            one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            one.bind(("127.0.0.1", 0))
        yield [int(one.getsockname()[1]) for one in sockets]
