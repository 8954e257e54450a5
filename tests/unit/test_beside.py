"""Coroutines that run concurrently."""

import asyncio

import pytest

from ioa.beside import together


class _OutOfReachError(Exception):
    """The error of a coroutine."""


async def _returns(value: int, *, turns: int) -> int:
    for _ in range(turns):
        await asyncio.sleep(0)
    return value


async def test_results_are_in_order() -> None:
    """Of the coroutines, not of their ends."""
    assert await together(_returns(1, turns=3), _returns(2, turns=1)) == [1, 2]


async def test_failing_coroutine_ends_the_others_and_raises_its_error() -> None:
    """Without an exception group."""
    ended = list[str]()

    async def waits() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append("waits")

    async def fails() -> None:
        await asyncio.sleep(0)
        raise _OutOfReachError

    with pytest.raises(_OutOfReachError):
        await together(waits(), fails())

    assert ended == ["waits"]
