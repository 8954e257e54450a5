"""What making streams and buckets promises: it may be done by everybody, at any time, and loses nothing."""

from __future__ import annotations

import asyncio
from datetime import timedelta

from nats.aio.client import Client
from nats.js.api import DiscardPolicy, StreamConfig

from ioa.adapters.nats_buckets import NatsCards, NatsLeases
from ioa.adapters.nats_connection import NatsSettings, open_connection
from ioa.adapters.nats_server import NatsServer
from ioa.adapters.nats_topology import DEAD, LEASES, WORK, Topology, ensure_pool_consumer
from ioa.ports.registry_store import CardRecord
from ioa.protocol.ids import AgentId, PoolId
from tests.unit.group.scenario import START, card

ADA = AgentId("ada")


async def test_everybody_may_make_it_at_once(nats_server: NatsServer) -> None:
    """Services that start side by side on an empty server all find what they need."""
    async with open_connection(NatsSettings(nats_server.url, "test")) as client:
        await asyncio.gather(*(Topology().ensure(client.jetstream()) for _ in range(5)))
        names = {info.config.name for info in await client.jetstream().streams_info()}
    buckets = {f"KV_IOA_{name}" for name in ("CARDS", "LEASES", "MEMBERS", "GOAL_RECORDS")}
    streams = {f"IOA_{name}" for name in ("GOALS", "WORK", "RESULTS", "LOG", "TIMERS", "DEAD", "OUTCOMES")}
    assert names == {*streams, *buckets, "OBJ_IOA_ARTIFACTS", "OBJ_IOA_FILES"}


async def test_making_it_again_loses_nothing(nats_client: Client) -> None:
    """What is stored survives the next start."""
    record = CardRecord(card=card("ada"), registered_at=START)
    await NatsCards(nats_client).put(record)
    await Topology().ensure(nats_client.jetstream())
    assert await NatsCards(nats_client).get(ADA) == record


async def test_another_lease_is_taken_over(nats_client: Client) -> None:
    """The length of leases follows the settings of whoever started last, also longer than at first."""
    await Topology(lease=timedelta(seconds=120)).ensure(nats_client.jetstream())
    await NatsLeases(nats_client).renew(ADA)
    bucket = await nats_client.jetstream().key_value(LEASES)
    assert (await bucket.status()).ttl == 120


async def test_a_stream_of_an_older_version_is_brought_up_to_date(nats_server: NatsServer) -> None:
    """A stream with other limits gets those of this version and keeps its messages."""
    async with open_connection(NatsSettings(nats_server.url, "test")) as client:
        js = client.jetstream()
        await js.add_stream(StreamConfig(name=DEAD, subjects=["ioa.v1.dead.*"], max_msgs=5, discard=DiscardPolicy.OLD))
        await js.publish("ioa.v1.dead.unreadable", b"kept")
        await Topology().ensure(js)
        info = await js.stream_info(DEAD)
    assert (info.config.max_msgs, info.state.messages) == (100_000, 1)


async def test_there_may_be_more_than_a_thousand_pools(nats_client: Client) -> None:
    """The server's own bound on the consumers of a work queue is no bound on pools."""
    js, at_once = nats_client.jetstream(), asyncio.Semaphore(16)

    async def ensure(number: int) -> None:
        async with at_once:
            await ensure_pool_consumer(js, PoolId(f"pool-{number}"))

    await asyncio.gather(*(ensure(number) for number in range(1_010)))
    assert (await js.stream_info(WORK)).state.consumer_count == 1_011
