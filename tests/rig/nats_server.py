"""What tests do to a nats-server that nobody else should."""

from __future__ import annotations

import os
import signal

from ioa.adapters.nats.server import NatsServer


async def crash(server: NatsServer) -> None:
    """Kill the server with SIGKILL and return once it is gone. `server.start()` brings it back on the same port and folder."""
    os.kill(server.pid, signal.SIGKILL)
    await server.wait()
