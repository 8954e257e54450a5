"""Things that run side by side."""

import asyncio
from contextlib import suppress

import pytest

from ioa.beside import TaskGroup, together


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


async def test_who_is_cancelled_as_a_task_fails_is_cancelled() -> None:
    """Whoever tries again after an error would go on for ever, with nobody left to cancel him."""
    tries = 0

    async def fails(trying: asyncio.Task[None]) -> None:
        trying.cancel()
        raise _OutOfReachError

    async def tries_again() -> None:
        nonlocal tries
        while tries < 10:
            tries += 1
            with suppress(ExceptionGroup):
                async with TaskGroup() as group:
                    group.create_task(fails(trying))
                    await asyncio.Event().wait()
            await asyncio.sleep(0)

    trying = asyncio.create_task(tries_again())
    await asyncio.wait([trying])
    assert (trying.cancelled(), tries) == (True, 1)


async def test_who_waits_for_a_task_that_fails_is_not_taken_for_cancelled() -> None:
    """Neither by who was not, nor by who was cancelled before and puts things away."""
    ended, has_counted = list[int](), asyncio.Event()

    async def fails() -> None:
        raise _OutOfReachError

    async def counts() -> None:
        task = asyncio.current_task()
        assert task is not None
        with pytest.raises(ExceptionGroup):
            async with TaskGroup() as group:
                group.create_task(fails())
        await asyncio.sleep(0)
        ended.append(task.cancelling())
        has_counted.set()

    async def puts_away() -> None:
        try:
            await counts()
            await asyncio.Event().wait()
        finally:
            await counts()

    putting = asyncio.create_task(puts_away())
    await has_counted.wait()
    putting.cancel()
    await asyncio.wait([putting])
    assert (putting.cancelled(), ended) == (True, [0, 1])


async def test_an_outer_group_ends_when_both_fail_at_once() -> None:
    """The cancellation that is dropped may be the outer group's own."""

    async def fails() -> None:
        await asyncio.sleep(0)
        raise _OutOfReachError

    async with asyncio.timeout(5) as limit:
        with pytest.raises(ExceptionGroup):
            async with TaskGroup() as outer:
                outer.create_task(fails())
                with suppress(ExceptionGroup):
                    async with TaskGroup() as inner:
                        inner.create_task(fails())
                        await asyncio.Event().wait()
                await asyncio.Event().wait()
    assert not limit.expired()
