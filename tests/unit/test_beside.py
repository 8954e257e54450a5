"""Things that run side by side."""

import asyncio

import pytest

from ioa.beside import together


class _OutOfReachError(Exception):
    """What one of them fails with."""


async def _returns(value: int, *, turns: int) -> int:
    for _ in range(turns):
        await asyncio.sleep(0)
    return value


async def test_what_each_returns_comes_in_order() -> None:
    """Which of them is done first does not matter."""
    assert await together(_returns(1, turns=3), _returns(2, turns=1)) == [1, 2]


async def test_when_one_fails_the_others_have_ended_and_its_error_is_raised_as_it_is() -> None:
    """Nothing goes on of which nobody would hear."""
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
