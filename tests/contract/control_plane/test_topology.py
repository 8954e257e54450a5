"""What making streams and buckets promises: it may be done by everybody, at any time, and loses nothing."""

from __future__ import annotations

import asyncio
import json
from datetime import timedelta
from pathlib import Path

import pytest
from nats.aio.client import Client
from nats.js.api import DiscardPolicy, KeyValueConfig, StreamConfig
from nats.js.errors import APIError

from ioa.adapters.nats.buckets import NatsCards, NatsLeases
from ioa.adapters.nats.connection import NatsSettings, open_connection
from ioa.adapters.nats.files import NatsFileStore
from ioa.adapters.nats.server import NatsServer, open_nats_server
from ioa.adapters.nats.topology import (
    ARTIFACTS,
    DEAD,
    FILES,
    GOAL_RECORDS,
    GOALS,
    HOOKS,
    LEASES,
    LOG,
    MEMBERS,
    RESULTS,
    STREAMS,
    WORK,
    Parts,
    Shares,
    Topology,
    ensure_pool_consumer,
)
from ioa.errors import StoreFullError
from ioa.ports.registry_store import CardRecord
from ioa.protocol import subjects
from ioa.protocol.ids import AgentId, PoolId
from tests.rig.stored_files import fetch_file, store_file
from tests.unit.group.scenario import START, card

ADA = AgentId("ada")


async def test_everybody_may_make_it_at_once(nats_server: NatsServer) -> None:
    """Services that start side by side on an empty server all find what they need."""
    async with open_connection(NatsSettings(nats_server.url, "test")) as client:
        await asyncio.gather(*(Topology().ensure(client.jetstream()) for _ in range(5)))
        names = {info.config.name for info in await client.jetstream().streams_info()}
    assert names == set(STREAMS)


async def test_ids_of_users_messages_are_kept_briefly(nats_client: Client) -> None:
    """The server has them in memory, and users choose them: what else they publish no stream keeps."""
    goals = (await nats_client.jetstream().stream_info(GOALS)).config
    assert goals.duplicate_window == 10


async def test_making_it_again_loses_nothing(nats_client: Client) -> None:
    """What is stored survives the next start."""
    record = CardRecord(card=card("ada"), registered_at=START)
    await NatsCards(nats_client).put(record)
    await Topology().ensure(nats_client.jetstream())
    assert await NatsCards(nats_client).get(ADA) == record


async def test_leases_of_an_older_version_run_out_no_more(nats_server: NatsServer) -> None:
    """Keys that ran out by themselves stay from now on, and leave no markers: who is alive is judged by what was heard."""
    async with open_connection(NatsSettings(nats_server.url, "test")) as client:
        js = client.jetstream()
        bucket = await js.create_key_value(KeyValueConfig(bucket=LEASES, history=1, ttl=0.5, limit_marker_ttl=3_600))
        await bucket.put("ada", b"")
        await Topology().ensure(js)
        await NatsLeases(client).renew(AgentId("bob"))
        config = (await js.stream_info(f"KV_{LEASES}")).config
        kept = await js.get_last_msg(f"KV_{LEASES}", f"$KV.{LEASES}.ada")
    assert (config.max_age or 0, config.subject_delete_marker_ttl or 0, kept.seq) == (0, 0, 1)


async def test_a_stream_of_an_older_version_is_brought_up_to_date(nats_server: NatsServer) -> None:
    """A stream with other limits gets those of this version and keeps its messages."""
    async with open_connection(NatsSettings(nats_server.url, "test")) as client:
        js = client.jetstream()
        await js.add_stream(StreamConfig(name=DEAD, subjects=["ioa.v1.dead.*"], max_msgs=5, discard=DiscardPolicy.OLD))
        await js.publish("ioa.v1.dead.unreadable", b"kept")
        await Topology().ensure(js)
        info = await js.stream_info(DEAD)
    assert (info.config.max_msgs, info.state.messages) == (100_000, 1)


async def test_results_are_no_longer_lost_by_age(nats_server: NatsServer) -> None:
    """Results and goals on record of an older version are kept until retention removes them; what no goal knows of goes by age."""
    async with open_connection(NatsSettings(nats_server.url, "test")) as client:
        js = client.jetstream()
        await js.add_stream(StreamConfig(name=RESULTS, subjects=["ioa.v1.result.*"], max_age=86_400, discard=DiscardPolicy.OLD))
        await js.publish("ioa.v1.result.goal-1", b"kept")
        await js.create_key_value(bucket=GOAL_RECORDS, history=1)
        await Topology(keep=timedelta(days=7)).ensure(js)
        results, records, files = [await js.stream_info(name) for name in (RESULTS, f"KV_{GOAL_RECORDS}", f"OBJ_{FILES}")]
    assert (results.config.max_age, results.state.messages, records.config.allow_direct) == (0, 1, True)
    assert files.config.max_age == timedelta(days=67).total_seconds()


async def test_a_bucket_of_an_older_version_can_be_read_by_pages(nats_server: NatsServer) -> None:
    """The record of memberships that an older version made is opened to direct reads, keeps its keys, and is left alone then."""
    async with open_connection(NatsSettings(nats_server.url, "test")) as client:
        js = client.jetstream()
        await (await js.create_key_value(KeyValueConfig(bucket=MEMBERS, history=1))).put("ada.room", b"")
        for _ in range(2):
            await Topology().ensure(js)
        info = await js.stream_info(f"KV_{MEMBERS}")
    assert (info.config.allow_direct, info.state.messages) == (True, 1)


async def test_there_may_be_more_than_a_thousand_pools(nats_client: Client) -> None:
    """The server's own bound on the consumers of a work queue is no bound on pools."""
    js, at_once = nats_client.jetstream(), asyncio.Semaphore(16)

    async def ensure(number: int) -> None:
        async with at_once:
            await ensure_pool_consumer(js, PoolId(f"pool-{number}"))

    await asyncio.gather(*(ensure(number) for number in range(1_010)))
    assert (await js.stream_info(WORK)).state.consumer_count == 1_011


async def test_the_largest_streams_have_shares(nats_server: NatsServer) -> None:
    """What is full refuses more and keeps what it has, and others have room; a share is never less than what is stored already."""
    async with open_connection(NatsSettings(nats_server.url, "test")) as client:
        js, store = client.jetstream(), NatsFileStore(client)
        await Topology().ensure(js)
        kept = await store_file(store, "o", "a", b"x" * 300_000)
        for _ in range(2):
            await Topology(store_bytes=4_000_000, parts=Parts(log=50, files=5, artifacts=25)).ensure(js)
        names = (LOG, f"OBJ_{FILES}", f"OBJ_{ARTIFACTS}", GOALS)
        log, files, artifacts, goals = [(await js.stream_info(name)).config.max_bytes or 0 for name in names]
        with pytest.raises(StoreFullError):
            await store_file(store, "p", "b", b"y" * 300_000)
        assert await fetch_file(store, kept) == b"x" * 300_000
        with pytest.raises(APIError, match="maximum bytes exceeded"):
            for number in range(5):
                await js.publish(f"ioa.v1.goal.eve.bob-{number}", b"z" * 100_000)
        await js.publish("ioa.v1.comm.room.log", b"others go on")
    assert (log, 300_000 < files < 400_000, artifacts, goals) == (2_000_000, True, 1_000_000, 400_000)


_ACCOUNT = {"jetstream": {"max_file": 40_000_000}, "users": [{"user": "a", "password": "a"}]}
_BOUNDED = json.dumps({"accounts": {"A": _ACCOUNT}, "no_auth_user": "a"})


async def test_making_it_again_lists_nothing_that_users_make_long(nats_server: NatsServer) -> None:
    """A service does so whenever it connects. Of 450 goals on subjects of 4 kB the list is more than a connection may be sent."""
    async with open_connection(NatsSettings(nats_server.url, "test")) as client:
        topology = Topology(store_bytes=100_000_000, parts=Parts(log=40, files=25, artifacts=15))
        await topology.ensure(client.jetstream())
        for number in range(450):
            await client.publish(f"{subjects.OLD_GOAL}.eve.{'<' * 3_900}{number}", b"x")
        await client.flush()
        await topology.ensure(client.jetstream())
        config = (await client.jetstream().stream_info(GOALS)).config
    assert client.stats["reconnects"] == 0
    assert (config.max_msgs_per_subject, config.max_bytes) == (topology.goals_waiting, 10_000_000)


async def test_a_share_that_is_full_does_not_grow_each_time_that_a_service_connects(nats_server: NatsServer) -> None:
    """It was a fourth more than it held, each time: who fills what goals wait in had it grow. One that was lowered comes down."""
    async with open_connection(NatsSettings(nats_server.url, "test")) as client:
        js, shares, parts = client.jetstream(), list[int | None](), Parts(log=40, files=25, artifacts=15)
        for store in (10_000_000, 10_000_000, 5_000_000, 20_000_000):
            await Topology(store_bytes=store, parts=parts).ensure(js)
            with pytest.raises(APIError, match="maximum bytes exceeded"):
                for number in range(30):
                    await js.publish(f"{subjects.OLD_GOAL}.eve.bob-{number}", b"z" * 100_000)
            shares.append((await js.stream_info(GOALS)).config.max_bytes)
    assert shares == [1_000_000, 1_000_000, 1_000_000, 2_000_000]


async def test_a_bound_is_lowered_when_no_more_is_held(nats_server: NatsServer) -> None:
    """What is beyond a bound when that is set would be dropped; what came under another one stays."""
    async with open_connection(NatsSettings(nats_server.url, "test")) as client:
        js, bounds = client.jetstream(), list[int | None]()
        await Topology(goals_waiting=5).ensure(js)
        for _ in range(4):
            await js.publish(f"{subjects.OLD_GOAL}.eve", b"x")
        for waiting in (2, 9, 5):
            await Topology(goals_waiting=waiting).ensure(js)
            bounds.append((await js.stream_info(GOALS)).config.max_msgs_per_subject)
        await js.purge_stream(GOALS, keep=1)
        await Topology(goals_waiting=2).ensure(js)
        info = await js.stream_info(GOALS)
    assert (bounds, info.config.max_msgs_per_subject, info.state.messages) == ([4, 9, 5], 2, 1)


async def test_what_an_account_may_store_is_shared_if_nobody_says_how_much(tmp_path: Path) -> None:
    """A tenant is bounded by its account: its files leave room for its goals. What has outgrown its share is left as it is."""
    parts = Parts(log=40, files=25, artifacts=15)
    async with (
        open_nats_server(tmp_path, None, authorization=_BOUNDED) as server,
        open_connection(NatsSettings(server.url, "test")) as client,
    ):
        js = client.jetstream()
        assert await Topology().ensure(js) is None
        assert await Topology(parts=parts).ensure(js) == Shares(16_000_000, 10_000_000, 6_000_000, 4_000_000, 40_000_000)
        files = (await js.stream_info(f"OBJ_{FILES}")).config
        await js.update_stream(files.evolve(max_bytes=-1))
        await store_file(NatsFileStore(client), "o", "a", b"x" * 20_000_000)
        await Topology(parts=parts).ensure(js)
        held = [(await js.stream_info(name)).config.max_bytes for name in (LOG, f"OBJ_{FILES}")]
    assert (files.max_bytes, held) == (10_000_000, [16_000_000, -1])


async def test_notices_of_an_older_version_stay(nats_server: NatsServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """A queue of webhooks that holds more than this version allows for all keeps it, and takes no more until there is room."""
    async with open_connection(NatsSettings(nats_server.url, "test")) as client:
        js = client.jetstream()
        older = next(one for one in Topology().streams() if one.name == HOOKS).evolve(max_msgs=-1)
        await js.add_stream(older)
        for number in range(6):
            await js.publish(subjects.hook(f"one{number}"), b"")
        monkeypatch.setattr("ioa.adapters.nats.topology._HOOKS_OF_ALL", 4)
        await Topology().ensure(js)
        with pytest.raises(APIError, match="maximum messages exceeded"):
            await js.publish(subjects.hook("more"), b"")
        info = await js.stream_info(HOOKS)
    assert (info.state.messages, info.config.max_msgs) == (6, 6)


async def test_queues_of_older_versions_learn_to_forget(nats_server: NatsServer) -> None:
    """Streams that know neither times of life nor the same letter for a day are brought up to date, with what they hold."""
    async with open_connection(NatsSettings(nats_server.url, "test")) as client:
        js = client.jetstream()
        await Topology().ensure(js)
        for name in (WORK, DEAD):
            config = (await js.stream_info(name)).config
            await js.delete_stream(name)
            await js.add_stream(config.evolve(allow_msg_ttl=False, duplicate_window=120))
        await js.publish(subjects.WORK, b"older")
        await Topology().ensure(js)
        await js.publish(subjects.WORK, b"newer", msg_ttl=60)
        work, dead = (await js.stream_info(WORK)), (await js.stream_info(DEAD)).config
    assert (work.state.messages, work.config.allow_msg_ttl, dead.duplicate_window) == (2, True, 86_400)
