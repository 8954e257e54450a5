"""The blocking detector finds what it should and nothing else. The threshold is short here to keep the tests so."""

from __future__ import annotations

import asyncio
import threading
import time
from datetime import timedelta

import pytest

from tests.rig.loop_watch import watch_loops

pytestmark = pytest.mark.blocks_loop

# A block is recorded when its callback ends, so the offenders below end theirs with `sleep(0)` before they look.
_THRESHOLD = timedelta(milliseconds=60)


async def test_callback_that_sleeps_is_reported() -> None:
    """The report contains the duration and the coroutine."""
    with watch_loops(_THRESHOLD) as watch:
        await asyncio.sleep(0)
        time.sleep(0.5)  # noqa: ASYNC251  the offence
        await asyncio.sleep(0)
    [block] = watch.blocks
    assert (block.duration > _THRESHOLD, "test_callback_that_sleeps_is_reported" in block.callback) == (True, True)


async def test_says_nothing_of_a_loop_that_waits() -> None:
    """Waiting in the loop's own way is no block, however long it takes."""
    with watch_loops() as watch:
        await asyncio.to_thread(time.sleep, 0.3)
        await asyncio.sleep(0.3)
    assert watch.blocks == []


async def test_counts_computing_as_blocking() -> None:
    """A callback that computes for too long blocks as well as one that sleeps."""
    with watch_loops(_THRESHOLD) as watch:
        await asyncio.sleep(0)
        end = time.thread_time() + 0.1
        while time.thread_time() < end:
            pass
        await asyncio.sleep(0)
    assert len(watch.blocks) == 1


def test_watches_a_loop_in_another_thread() -> None:
    """Every loop of the process is watched, whichever thread runs it."""

    async def block() -> None:
        time.sleep(0.5)  # noqa: ASYNC251  the offence

    with watch_loops(_THRESHOLD) as watch:
        thread = threading.Thread(target=lambda: asyncio.run(block()))
        thread.start()
        thread.join()
    assert len(watch.blocks) == 1
