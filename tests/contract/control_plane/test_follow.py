"""Following a bucket on a real server."""

from __future__ import annotations

import asyncio

import pytest
from nats.aio.client import Client
from nats.js.api import KeyValueConfig
from nats.js.kv import KeyValue

from ioa.adapters.nats import buckets as nats_buckets
from ioa.adapters.nats.buckets import Snapshot, follow
from ioa.adapters.nats.connection import NatsSettings, open_connection


async def _without_end_mark(client: Client, bucket: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have nats-py miss the end of what is stored, as it does if the keys that it still waits for are removed meanwhile."""
    store = await client.jetstream().create_key_value(KeyValueConfig(bucket=bucket))
    await store.put("a", b"1")
    watchall = KeyValue.watchall

    async def watch(self: KeyValue) -> KeyValue.KeyWatcher:
        watcher = await watchall(self)
        kept = [update for update in [await watcher._updates.get(), await watcher._updates.get()] if update is not None]
        for update in kept:
            watcher._updates.put_nowait(update)
        return watcher

    monkeypatch.setattr(KeyValue, "watchall", watch)
    monkeypatch.setattr(nats_buckets, "_QUIET_SECONDS", 0.05)


async def test_a_snapshot_ends_although_its_last_keys_were_removed(nats_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing comes any more, and the server says that it has sent everything: that is the end of the snapshot."""
    async with open_connection(NatsSettings(nats_url, "follower")) as client:
        await _without_end_mark(client, "quiet", monkeypatch)
        async with asyncio.timeout(10):
            changes = follow(client, "quiet")
            first = await anext(changes)
            await changes.aclose()  # type: ignore[attr-defined]  # it is a generator

    assert isinstance(first, Snapshot)
    assert first.values == {"a": b"1"}
