"""Whose turns what is read of the system takes."""

from __future__ import annotations

import asyncio

from ioa.protocol.codec import MAX_PAYLOAD_BYTES
from ioa_gateway.callers import NOBODY
from ioa_gateway.reading import OF_USER, Reads, reads_for


async def test_whoever_shows_no_key_takes_no_turn_of_what_the_gateway_reads_for_itself() -> None:
    """Keys, and what webhooks are told, are read beside any number of invented tokens."""
    reads, stop = Reads(), asyncio.Event()

    async def redeem() -> None:
        reads_for.set(NOBODY.user)
        async with reads.reading(MAX_PAYLOAD_BYTES):
            await stop.wait()

    async with asyncio.TaskGroup() as group:
        for _ in range(2 * OF_USER):
            group.create_task(redeem())
        await asyncio.sleep(0)
        async with asyncio.timeout(5), reads.reading(MAX_PAYLOAD_BYTES):
            stop.set()
