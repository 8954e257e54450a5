"""Reading many things one by one."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from ioa.beside import beside
from ioa.little_by_little import little_by_little


@dataclass
class _Message:
    data: bytes


async def test_others_have_their_turns_between() -> None:
    """Behind each 64 kB; of little there is no more to do than to read it."""
    turns = 0

    async def take_turns() -> None:
        nonlocal turns
        while True:
            await asyncio.sleep(0)
            turns += 1

    async def read(size: int) -> int:
        nonlocal turns
        turns = 0
        assert len([one async for one in little_by_little([_Message(bytes(size))] * 20)]) == 20
        return turns

    async with beside(take_turns()):
        await asyncio.sleep(0)
        assert (await read(64_000) >= 19, await read(100)) == (True, 0)
