"""The store rule: no new goals while the store is over 90 % full."""

from __future__ import annotations

import asyncio

import pytest

from ioa.errors import StoreFullError, UnavailableError
from ioa.runtime.store_share import StoreShare
from tests.rig.deadline import eventually
from tests.rig.memory_storage import MemoryStorage


async def test_full_store_rejects_until_it_has_space() -> None:
    """The store is measured at most once per second."""
    storage, now = MemoryStorage(), [0.0]
    share = StoreShare(storage, lambda: now[0])
    storage.used_part = 0.9
    await share.check()
    storage.used_part = 0.91
    await share.check()
    now[0] = 1.0
    with pytest.raises(StoreFullError) as full:
        await share.check()
    storage.used_part = 0.5
    now[0] = 2.0
    await share.check()
    assert full.value.retry_after is not None


async def test_unreachable_store_keeps_last_state(monkeypatch: pytest.MonkeyPatch) -> None:
    """A failed measurement neither accepts nor rejects goals."""
    storage, now = MemoryStorage(), [0.0]
    share = StoreShare(storage, lambda: now[0])
    storage.used_part = 1.0
    with pytest.raises(StoreFullError):
        await share.check()

    async def fail() -> float:
        raise UnavailableError("JetStream does not answer.")

    monkeypatch.setattr(storage, "used", fail)
    now[0] = 5.0
    with pytest.raises(StoreFullError):
        await share.check()


async def test_stream_of_goals_is_closed_while_store_is_full(monkeypatch: pytest.MonkeyPatch) -> None:
    """Publishing is rejected at the stream, so that the client gets the error at once."""
    monkeypatch.setattr("ioa.runtime.store_share._MEASURE_SECONDS", 0.0)
    storage = MemoryStorage()
    storage.used_part = 1.0
    async with asyncio.TaskGroup() as group:
        following = group.create_task(StoreShare(storage).follow())
        await eventually(lambda: not storage.accepts_goals)
        storage.used_part = 0.2
        await eventually(lambda: storage.accepts_goals)
        following.cancel()
