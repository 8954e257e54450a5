"""Publish as fast as one connection can, with an agent's key, and connect again at once whenever that ends.

With `TRACE` nats-server passes each message over and counts none, since its trace is to go where its sender may not publish.
Writes a line of JSON whenever nats-server begins to let it in, or to refuse it.
"""

import asyncio
import json
import logging
import os
import ssl
import sys

import nats
import nats.errors

from ioa.adapters.nkey_seeds import read_key

SEED = read_key("/given/seed").seed
AUTHORITY = ssl.create_default_context(cafile="/given/ca.crt")
HEADERS = {"Nats-Trace-Dest": "ioa.v1.registry.remove"} if "TRACE" in os.environ else None
MESSAGES_AT_ONCE = 1_000
said: list[bool] = []


def say(*, let_in: bool) -> None:
    """Write a line if that is new."""
    if [let_in] != said:
        said[:] = [let_in]
        sys.stdout.write(json.dumps({"let_in": let_in}) + "\n")
        sys.stdout.flush()


async def flood() -> None:
    """Flood until the connection ends."""
    client = await nats.connect(os.environ["NATS"], nkeys_seed_str=SEED, tls=AUTHORITY, allow_reconnect=False, error_cb=pass_over)
    say(let_in=True)
    try:
        while client.is_connected:
            for _ in range(MESSAGES_AT_ONCE):
                await client.publish(os.environ["SUBJECT"], bytes(10), headers=HEADERS)
            await client.flush()
    finally:
        await client.close()


async def pass_over(_error: Exception) -> None:
    """Say nothing: what matters is raised as well."""


async def come_back() -> None:
    """Flood again and again."""
    while True:
        try:
            await flood()
        except (nats.errors.Error, OSError, TimeoutError) as error:
            if "authorization violation" in str(error).lower():
                say(let_in=False)


logging.disable()  # the log is for lines of JSON alone
asyncio.run(come_back())
