"""The blocking detector finds what it should and nothing else. Thresholds are short here to keep the tests so."""

from __future__ import annotations

import asyncio
import ctypes
import os
import sys
import threading
import time
from datetime import timedelta

import pytest

from ioa.testing.loop_watch import watch_loops

pytestmark = pytest.mark.blocks_loop

# A block is recorded when its callback ends, so the offenders below end theirs with `sleep(0)` before they look.
_THRESHOLD = timedelta(milliseconds=60)


async def test_names_the_callback_that_slept_and_shows_where() -> None:
    """A blocking call is reported with how long it took and the line that made it."""
    with watch_loops(_THRESHOLD) as watch:
        await asyncio.sleep(0)
        time.sleep(0.3)  # noqa: ASYNC251  the offence
        await asyncio.sleep(0)
    [block] = watch.blocks
    assert (block.duration > _THRESHOLD, "time.sleep(0.3)" in block.stack) == (True, True)


async def test_says_nothing_of_a_loop_that_waits() -> None:
    """Waiting in the loop's own way is no block, however long it takes."""
    with watch_loops(_THRESHOLD) as watch:
        await asyncio.to_thread(time.sleep, 0.12)
        await asyncio.sleep(0.12)
    assert watch.blocks == []


async def test_counts_computing_as_blocking() -> None:
    """A callback that computes for too long blocks as well as one that sleeps."""
    with watch_loops(_THRESHOLD) as watch:
        await _compute(0.12)
    assert len(watch.blocks) == 1


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells how long a thread waited for a core")
async def test_does_not_count_the_time_without_a_core() -> None:
    """A callback that only waited for a core, because others kept it busy, is not reported."""
    threshold, cores = timedelta(milliseconds=40), os.sched_getaffinity(0)
    rivals = [await asyncio.create_subprocess_exec("sh", "-c", "while :; do :; done") for _ in range(7)]
    for rival in rivals:
        os.sched_setaffinity(rival.pid, {min(cores)})
    with watch_loops(threshold) as watch:
        os.sched_setaffinity(0, {min(cores)})
        started = time.monotonic()
        await _compute(0.01)
        longest = timedelta(seconds=time.monotonic() - started)
        os.sched_setaffinity(0, cores)
    for rival in rivals:
        rival.kill()
        await rival.wait()
    assert (longest > threshold, watch.blocks) == (True, [])


async def _compute(seconds: float) -> None:
    """Use a core for that long, in a callback of its own."""
    await asyncio.sleep(0)
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass
    await asyncio.sleep(0)


@pytest.mark.parametrize(("held", "found"), [(timedelta(milliseconds=120), 0), (timedelta(milliseconds=400), 1)])
async def test_is_more_patient_when_the_gil_is_held(held: timedelta, found: int) -> None:
    """A call that waits and keeps the GIL is found only if it is a long one."""
    usleep = ctypes.PyDLL(None).usleep  # a PyDLL's functions keep the GIL
    with watch_loops(_THRESHOLD) as watch:
        await asyncio.sleep(0)
        usleep(round(held / timedelta(microseconds=1)))
        await asyncio.sleep(0)
    assert len(watch.blocks) == found


def test_watches_a_loop_in_another_thread() -> None:
    """Every loop of the process is watched, whichever thread runs it."""

    async def block() -> None:
        time.sleep(0.3)  # noqa: ASYNC251  the offence

    with watch_loops(_THRESHOLD) as watch:
        thread = threading.Thread(target=lambda: asyncio.run(block()))
        thread.start()
        thread.join()
    assert len(watch.blocks) == 1
