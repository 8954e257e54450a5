"""What making streams and buckets promises: it may be done by everybody, at any time, and loses nothing."""

from __future__ import annotations

import asyncio
import json
import shutil
from pathlib import Path

import pytest
from nats.js.errors import APIError

from ioa.adapters.nats.delivery.nats_delivery import NatsDeadLetters
from ioa.adapters.nats.stores.goal_files import NatsFileStore
from ioa.adapters.nats.streams.topology import (
    DEAD,
    FILES,
    FORMAT,
    FORMAT_KEY,
    GOALS,
    STREAMS,
    Shares,
    Topology,
)
from ioa.adapters.nats.wire.connection import NatsSettings, open_connection
from ioa.adapters.nats.wire.embedded_server import open_nats_server
from ioa.errors import ConflictError, StoreFullError
from ioa.protocol import subjects
from ioa.protocol.operation.dead_letters import DeadReason
from tests.rig.stored_files import fetch_file, store_file


async def test_everybody_may_make_it_at_once(nats_url: str) -> None:
    """Services that start side by side on an empty server all find what they need."""
    async with open_connection(NatsSettings(nats_url, "test")) as client:
        await asyncio.gather(*(Topology().ensure(client.jetstream()) for _ in range(5)))
        names = {info.config.name for info in await client.jetstream().streams_info()}
    assert names == set(STREAMS)


async def test_changed_stream_of_same_format_is_updated(nats_url: str) -> None:
    """A stream with other limits gets the current limits and keeps its messages."""
    async with open_connection(NatsSettings(nats_url, "test")) as client:
        js = client.jetstream()
        await Topology().ensure(js)
        dead = (await js.stream_info(DEAD)).config
        await js.update_stream(dead.evolve(max_msgs=5))
        await js.publish("ioa.v1.dead.unreadable", b"kept")
        await Topology().ensure(js)
        info = await js.stream_info(DEAD)
    assert (info.config.max_msgs_per_subject, info.state.messages) == (10_000, 1)


@pytest.mark.parametrize("name", [DEAD, f"OBJ_{FILES}"])
@pytest.mark.parametrize("number", ["2", None])
async def test_stream_of_other_format_is_rejected(nats_url: str, name: str, number: str | None) -> None:
    """The error names the stream, both numbers and the fix. An empty stream without a number gets the number."""
    async with open_connection(NatsSettings(nats_url, "test")) as client:
        js = client.jetstream()
        config = next(one for one in Topology().streams() if one.name == name)
        assert config.subjects is not None
        await js.add_stream(config.evolve(metadata=None if number is None else {FORMAT_KEY: number}))
        if number is None:
            await Topology().ensure(js)
            assert ((await js.stream_info(name)).config.metadata or {})[FORMAT_KEY] == FORMAT
            await js.update_stream(config.evolve(metadata={}))
        await js.publish(config.subjects[-1].replace(">", "x").replace("*", "x"), b"kept")
        with pytest.raises(ConflictError, match=rf"{name} has (format 2|no format number); expected 1") as refused:
            await Topology().ensure(js)
        assert "empty JetStream store" in refused.value.hint


async def test_full_stream_rejects_and_other_streams_accept(nats_url: str) -> None:
    """A stream at its `max_bytes` rejects messages and keeps the stored ones; making the topology again changes nothing."""
    async with open_connection(NatsSettings(nats_url, "test")) as client:
        js, store = client.jetstream(), NatsFileStore(client)
        shares = Shares(2_000_000)
        for _ in range(2):
            assert await Topology(store_bytes=shares.store).ensure(js) == shares
        bounds = {name: (await js.stream_info(name)).config.max_bytes for name in shares.by_stream()}
        kept = await store_file(store, "o", "a", b"x" * 500_000)
        with pytest.raises(StoreFullError):
            await store_file(store, "p", "b", b"y" * 500_000)
        assert await fetch_file(store, kept) == b"x" * 500_000
        with pytest.raises(APIError, match="maximum bytes exceeded"):
            for number in range(5):
                await js.publish(f"ioa.v1.goal.eve.bob-{number}", b"z" * 100_000)
        await js.publish("ioa.v1.comm.room.log", b"others go on")
    assert bounds == shares.by_stream()


async def test_dead_letters_replace_oldest_of_their_reason(nats_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Many letters of one reason remove no letter of another reason."""
    monkeypatch.setattr("ioa.adapters.nats.streams.topology._LETTERS_PER_REASON", 3)
    async with open_connection(NatsSettings(nats_url, "test")) as client:
        js = client.jetstream()
        await Topology().ensure(js)
        letters = NatsDeadLetters(client)
        await letters.put(DeadReason.CONFLICT, "why", subject="s", data=b"kept")
        for number in range(5):
            await letters.put(DeadReason.UNREADABLE, "why", subject="s", data=b"%d" % number)
        found = (await js.stream_info(DEAD, subjects_filter=subjects.ANY_DEAD)).state.subjects
    assert found == {subjects.dead(DeadReason.CONFLICT): 1, subjects.dead(DeadReason.UNREADABLE): 3}


_ACCOUNT = {"jetstream": {"max_file": 40_000_000}, "users": [{"user": "a", "password": "a"}]}
_BOUNDED = json.dumps({"accounts": {"A": _ACCOUNT}, "no_auth_user": "a"})


async def test_account_limit_is_size_of_store(tmp_path: Path) -> None:
    """Without `store_bytes` the limit of the account is shared by the streams; without a limit there are no shares."""
    async with (
        open_nats_server(tmp_path, None, authorization=_BOUNDED) as server,
        open_connection(NatsSettings(server.url, "test")) as client,
    ):
        assert await Topology().ensure(client.jetstream()) == Shares(40_000_000)


async def test_smaller_store_lowers_the_shares_of_existing_streams(tmp_path: Path) -> None:
    """nats-server reserves the bytes of all shares, at most three quarters of the disk: old and new do not fit together."""
    free = shutil.disk_usage(tmp_path).free
    async with open_nats_server(tmp_path, None) as server, open_connection(NatsSettings(server.url, "test")) as client:
        js = client.jetstream()
        for part in (0.7, 0.6):
            await Topology(store_bytes=int(free * part)).ensure(js)
        info = await js.stream_info(GOALS)
    assert info.config.max_bytes == Shares(int(free * 0.6)).by_stream()[GOALS]
