"""Task groups and timeouts lose no cancellation in any version of CPython; coroutines run together."""

import asyncio
from collections.abc import Callable
from contextlib import suppress

import pytest

from ioa import concurrency
from ioa.concurrency import TaskGroup, fail_after, together


class _OutOfReachError(Exception):
    """The error of a task."""


async def test_task_cancelled_while_its_child_fails_is_cancelled() -> None:
    """A retry loop would otherwise never end."""
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


async def test_task_that_waits_for_a_failing_child_is_not_cancelled() -> None:
    """Also if the task was cancelled before and cleans up."""
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

    async def cleans_up() -> None:
        try:
            await counts()
            await asyncio.Event().wait()
        finally:
            await counts()

    cleaning = asyncio.create_task(cleans_up())
    await has_counted.wait()
    cleaning.cancel()
    await asyncio.wait([cleaning])
    assert (cleaning.cancelled(), ended) == (True, [0, 1])


async def test_outer_group_ends_when_both_groups_fail() -> None:
    """The lost cancellation may be that of the outer group."""

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


@pytest.mark.parametrize("limited", [fail_after, concurrency._fail_after])
async def test_timeout_expires_in_a_cancelled_task(limited: Callable[[float | None], asyncio.Timeout]) -> None:
    """While the task cleans up. Another cancellation before the timeout cancels the task."""
    seen = list[str]()

    async def cleans_up(seconds: float) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            try:
                async with limited(seconds):
                    await asyncio.Event().wait()
            except TimeoutError:
                seen.append("out of time")

    for seconds, cancellations in ((0, 1), (60, 2)):
        cleaning = asyncio.create_task(cleans_up(seconds))
        for _ in range(cancellations):
            await asyncio.sleep(0)
            cleaning.cancel()
        await asyncio.wait([cleaning])
        assert cleaning.cancelled()
    assert seen == ["out of time"]


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
