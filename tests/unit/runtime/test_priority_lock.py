"""A lock whose urgent waiters come first, and that nobody loses, whoever is cancelled when."""

from __future__ import annotations

import asyncio
import random

import pytest

from ioa.runtime.priority_lock import PriorityLock


async def _rounds(count: int = 5) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


async def test_who_comes_between_release_and_turn_does_not_slip_in() -> None:
    """The lock is handed over: who asks while the next one is about to run waits behind it."""
    lock, served = PriorityLock(), list[str]()

    async def use(name: str) -> None:
        async with lock.held():
            served.append(name)

    async with asyncio.TaskGroup() as group:
        async with lock.held():
            group.create_task(use("first"))
            await _rounds()
        await use("second")
    assert served == ["first", "second"]


@pytest.mark.parametrize("seed", range(20))
async def test_no_two_hold_it_and_all_who_stay_get_it(seed: int) -> None:
    """With waiters that come, go and fail at random one at most holds the lock, and in the end it is free."""
    rng, lock, inside, got = random.Random(seed), PriorityLock(), 0, 0

    async def use(rounds: int, *, urgent: bool) -> None:
        nonlocal inside, got
        async with lock.held(urgent=urgent):
            inside += 1
            assert inside == 1
            try:
                await _rounds(rounds)
                got += 1
            finally:
                inside -= 1

    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(use(rng.randrange(4), urgent=rng.random() < 0.3)) for _ in range(40)]
        gone = rng.sample(tasks, 15)
        for task in gone:
            await _rounds(rng.randrange(6))
            task.cancel()
    assert got == len([task for task in tasks if not task.cancelled()])
    assert not lock.locked()
