"""Bounded concurrency that serves waiting keys round-robin."""

from __future__ import annotations

import asyncio

import pytest

from ioa.errors import RateLimitedError
from ioa.fair_semaphore import FairSemaphore


async def _run(semaphore: FairSemaphore, key: str, order: list[str]) -> None:
    async with semaphore.slot(key):
        order.append(key)
        await asyncio.sleep(0)


async def test_waiting_keys_are_served_round_robin() -> None:
    """A key with many waiting operations delays another key by one operation."""
    semaphore, order = FairSemaphore(1), list[str]()
    async with asyncio.TaskGroup() as group:
        for key in ["ada"] * 5 + ["eve"] * 2 + ["bob"]:
            group.create_task(_run(semaphore, key, order))
    assert order == ["ada", "ada", "eve", "bob", "ada", "eve", "ada", "ada"]


async def test_limit_and_limit_per_key_are_kept() -> None:
    """Neither more than `limit` operations run at once, nor more than `per_key` of one key."""
    semaphore = FairSemaphore(3, per_key=2)
    assert [semaphore.try_acquire(key) for key in ("ada", "ada", "ada", "eve", "bob")] == [True, True, False, True, False]
    semaphore.release("ada")
    assert semaphore.try_acquire("bob")


async def test_full_queue_of_a_key_is_rejected_and_other_keys_wait() -> None:
    """Beyond `max_waiting` operations of one key are rejected with a retry time; other keys still wait."""
    semaphore, order = FairSemaphore(1, max_waiting=1), list[str]()
    assert semaphore.try_acquire("ada")
    async with asyncio.TaskGroup() as group:
        group.create_task(_run(semaphore, "ada", order))
        group.create_task(_run(semaphore, "eve", order))
        await asyncio.sleep(0)
        with pytest.raises(RateLimitedError) as caught:
            await semaphore.acquire("ada")
        assert caught.value.retry_after is not None
        semaphore.release("ada")
    assert order == ["ada", "eve"]


@pytest.mark.parametrize("is_granted", [False, True])
async def test_cancelled_operation_keeps_no_slot(is_granted: bool) -> None:
    """An operation cancelled while it waits, or just after its slot was granted, leaves the slot to others."""
    semaphore = FairSemaphore(1)
    assert semaphore.try_acquire("ada")
    waiting = asyncio.ensure_future(semaphore.acquire("eve"))
    await asyncio.sleep(0)
    if is_granted:
        semaphore.release("ada")
        waiting.cancel()
    else:
        waiting.cancel()
        semaphore.release("ada")
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert semaphore.try_acquire("bob")
