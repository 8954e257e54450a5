"""Subscribe one inbox for each of N idle agents on one connection, and do nothing else: the limit of `benchmarks.density`.

python -m benchmarks.bare_agents URL N
"""

from __future__ import annotations

import asyncio
import sys
from datetime import timedelta

from nats.aio.msg import Msg

from ioa.adapters.nats.wire.connection import NatsSettings, open_connection


async def _ignore(_message: Msg) -> None:
    """Do nothing."""


async def wait_idle(url: str, agents: int) -> None:
    """Subscribe, print `ready`, and wait until the process is stopped."""
    async with open_connection(NatsSettings(url, "bare"), patience=timedelta(seconds=10)) as client:
        for number in range(agents):
            await client.subscribe(f"bare.{number}", cb=_ignore)
        await client.flush()
        print("ready", flush=True)
        await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(wait_idle(sys.argv[1], int(sys.argv[2])))
