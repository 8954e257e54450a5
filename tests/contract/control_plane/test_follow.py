"""Following a bucket on a real server."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from dataclasses import replace

import nats.errors
import pytest
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.js import JetStreamContext
from nats.js.api import ConsumerInfo, KeyValueConfig, SequenceInfo
from nats.js.errors import NotFoundError

from ioa.adapters.nats.streams import follow as nats_follow
from ioa.adapters.nats.streams.follow import follow_bucket
from ioa.adapters.nats.wire.connection import NatsSettings, open_connection


async def _losing_the_last_key(client: Client, bucket: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Store two keys, the last of which is removed, without a mark, before it comes."""
    store = await client.jetstream().create_key_value(KeyValueConfig(bucket=bucket))
    await store.put("a", b"1")
    await store.put("lost", b"2")
    next_msg = JetStreamContext.PushSubscription.next_msg

    async def next_but_lost(self: JetStreamContext.PushSubscription, timeout: float | None = 1.0) -> Msg:
        while (message := await next_msg(self, timeout)).subject.endswith(".lost"):
            await client.jetstream().purge_stream(f"KV_{bucket}", subject=message.subject)
        return message

    monkeypatch.setattr(JetStreamContext.PushSubscription, "next_msg", next_but_lost)
    monkeypatch.setattr(nats_follow, "_QUIET_SECONDS", 0.05)


async def test_a_snapshot_ends_although_its_last_keys_were_removed(nats_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing comes any more, and the server says that it has sent everything: that is the end of the snapshot."""
    async with open_connection(NatsSettings(nats_url, "follower")) as client:
        await _losing_the_last_key(client, "quiet", monkeypatch)
        async with asyncio.timeout(10):
            changes = follow_bucket(client, "quiet")
            first, is_snapshot = await anext(changes)
            await changes.aclose()

    assert is_snapshot
    assert {key: change.value for key, change in first.items()} == {"a": b"1"}


async def test_a_copy_that_lacks_keys_is_not_taken_for_the_bucket(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    """A node that catches up calls its empty copy all there is; the bucket is read again until all that its leader counts comes."""
    store = await client.jetstream().create_key_value(KeyValueConfig(bucket="lagging"))
    await store.put("a", b"1")
    subscriptions: list[object] = []
    next_msg, consumer_info = JetStreamContext.PushSubscription.next_msg, JetStreamContext.PushSubscription.consumer_info

    def lags(subscription: JetStreamContext.PushSubscription) -> bool:
        if subscription not in subscriptions:
            subscriptions.append(subscription)
        return subscription is subscriptions[0]

    async def next_of_copy(self: JetStreamContext.PushSubscription, timeout: float | None = 1.0) -> Msg:
        if lags(self):
            raise nats.errors.TimeoutError
        return await next_msg(self, timeout)

    async def info_of_copy(self: JetStreamContext.PushSubscription) -> ConsumerInfo:
        info = await consumer_info(self)
        return replace(info, num_pending=0, delivered=SequenceInfo(0, 0)) if lags(self) else info

    monkeypatch.setattr(JetStreamContext.PushSubscription, "next_msg", next_of_copy)
    monkeypatch.setattr(JetStreamContext.PushSubscription, "consumer_info", info_of_copy)
    monkeypatch.setattr(nats_follow, "_RETRY_SECONDS", 0.0)
    async with asyncio.timeout(10), aclosing(follow_bucket(client, "lagging")) as changes:
        first, is_snapshot = await anext(changes)

    assert is_snapshot
    assert ([(change.key, change.value) for change in first.values()], len(subscriptions)) == ([("a", b"1")], 2)


async def test_a_gap_spoils_no_later_snapshot(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    """nats-py goes on behind a gap by itself, and notes where in the configuration that it was given: all keys come again."""
    store = await client.jetstream().create_key_value(KeyValueConfig(bucket="gap"))
    await store.put("a", b"1")
    monkeypatch.setattr(nats_follow, "_RETRY_SECONDS", 0.0)
    monkeypatch.setattr(nats_follow, "_QUIET_SECONDS", 0.05)
    consumer_info, left = JetStreamContext.PushSubscription.consumer_info, [False]

    async def info(self: JetStreamContext.PushSubscription) -> ConsumerInfo:
        if left.pop() if left else False:
            raise NotFoundError
        return await consumer_info(self)

    async with asyncio.timeout(10), aclosing(follow_bucket(client, "gap")) as changes:
        assert (await anext(changes))[1]
        [ordered] = [one._jsi for one in client._subs.values() if one._jsi is not None]
        ordered._dseq += 1  # as if a message had been lost
        await store.put("b", b"2")
        await store.put("b", b"3")
        is_last = False
        while not is_last:
            last, _ = await anext(changes)
            is_last = any(change.value == b"3" for change in last.values())
        monkeypatch.setattr(JetStreamContext.PushSubscription, "consumer_info", info)
        left.append(True)  # the consumer is gone with its node
        again, is_snapshot = await anext(changes)
    assert is_snapshot
    assert {key: change.value for key, change in again.items()} == {"a": b"1", "b": b"3"}
