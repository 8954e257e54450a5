"""The blocking detector finds what it should and nothing else. The threshold is short here to keep the tests so."""

from __future__ import annotations

import asyncio
import threading
import time
from datetime import timedelta
from pathlib import Path

import pytest

from tests.rig.loop_watch import waits_for_the_disk, watch_loops

pytestmark = pytest.mark.blocks_loop

# A block is recorded when its callback ends, so the offenders below end theirs with `sleep(0)` before they look.
_THRESHOLD = timedelta(milliseconds=60)


async def test_names_the_callback_that_slept_and_shows_where() -> None:
    """A blocking call is reported with how long it took and the line that made it."""
    with watch_loops(_THRESHOLD) as watch:
        await asyncio.sleep(0)
        time.sleep(0.5)  # noqa: ASYNC251  the offence
        await asyncio.sleep(0)
    [block] = watch.blocks
    assert (block.duration > _THRESHOLD, "time.sleep(0.5)" in block.stack) == (True, True)


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


@pytest.mark.parametrize(("told", "waits"), [("7 (python) D 1 7", True), ("7 (a) D) S 1 7", False), ("7 (x y) S 1 7", False)])
def test_knows_a_thread_that_waits_for_the_disk(tmp_path: Path, told: str, waits: bool) -> None:
    """The state stands behind the thread's name, which may be anything; a thread that has ended waits for nothing."""
    (tmp_path / "stat").write_text(told)
    own = Path(f"/proc/self/task/{threading.get_native_id()}/stat")
    assert [waits_for_the_disk(file) for file in (tmp_path / "stat", own, tmp_path / "gone")] == [waits, False, False]
