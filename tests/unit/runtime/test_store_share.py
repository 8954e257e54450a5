"""The store rule: no new goals while the store is over 90 % full."""

from __future__ import annotations

import asyncio

import pytest

from ioa.errors import StoreFullError, UnavailableError
from tests.rig.deadline import eventually
from tests.rig.memory_storage import MemoryStorage


async def test_full_store_rejects_until_it_has_space(monkeypatch: pytest.MonkeyPatch) -> None:
    """A failed measurement keeps the last state."""
    storage = MemoryStorage()
    share, used = storage, storage.used
    storage.used_part = 0.9
    await share.measure()
    share.check()
    storage.used_part = 0.91
    await share.measure()

    async def fail() -> float:
        raise UnavailableError("JetStream does not answer.")

    monkeypatch.setattr(storage, "used", fail)
    with pytest.raises(UnavailableError):
        await share.measure()
    with pytest.raises(StoreFullError) as full:
        share.check()
    monkeypatch.setattr(storage, "used", used)
    storage.used_part = 0.5
    await share.measure()
    share.check()
    assert full.value.retry_after is not None


async def test_stream_of_goals_is_closed_while_store_is_full(monkeypatch: pytest.MonkeyPatch) -> None:
    """Publishing is rejected at the stream, so that the client gets the error at once."""
    monkeypatch.setattr("ioa.runtime.store_share._MEASURE_SECONDS", 0.0)
    storage = MemoryStorage()
    storage.used_part = 1.0
    async with asyncio.TaskGroup() as group:
        following = group.create_task(storage.follow())
        await eventually(lambda: not storage.accepts_goals)
        storage.used_part = 0.2
        await eventually(lambda: storage.accepts_goals)
        following.cancel()
