"""Task groups and time limits drop no cancellation, in any version of CPython."""

import asyncio
from collections.abc import Callable
from contextlib import suppress

import pytest

from ioa import cancellation
from ioa.cancellation import TaskGroup, fail_after


class _OutOfReachError(Exception):
    """What a task fails with."""


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
    """Neither one that was not, nor one that was cancelled before and puts things away."""
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


@pytest.mark.parametrize("limited", [fail_after, cancellation._fail_after])
async def test_a_limit_holds_in_who_puts_things_away(limited: Callable[[float | None], asyncio.Timeout]) -> None:
    """What is to be ended by force after a while lives on otherwise. A cancellation within the limit is one all the same."""
    seen = list[str]()

    async def puts_away(seconds: float) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            try:
                async with limited(seconds):
                    await asyncio.Event().wait()
            except TimeoutError:
                seen.append("out of time")

    for seconds, cancellations in ((0, 1), (60, 2)):
        putting = asyncio.create_task(puts_away(seconds))
        for _ in range(cancellations):
            await asyncio.sleep(0)
            putting.cancel()
        await asyncio.wait([putting])
        assert putting.cancelled()
    assert seen == ["out of time"]
