"""How queues stand and whether a process is ready, on a real nats-server."""

from __future__ import annotations

from prometheus_client import REGISTRY

from ioa.adapters.nats.stores.goal_records import NatsWorkQueue
from ioa.adapters.nats.streams.stream_stats import read_standing
from ioa.adapters.nats.streams.topology import STREAMS, Topology
from ioa.adapters.nats.wire.connection import NatsSettings, open_connection
from ioa.adapters.nats.wire.embedded_server import NatsServer
from ioa.protocol import subjects
from ioa.protocol.ids import PoolId
from ioa.telemetry import readiness
from tests.rig.deadline import eventually
from tests.rig.nats_server import crash


async def test_each_queue_tells_what_waits_and_what_is_taken(nats_url: str) -> None:
    """Goals of one pool of many, one of them taken; every stream is there with its size."""
    pools = [PoolId(f"pool{number}") for number in range(300)]
    async with open_connection(NatsSettings(nats_url, "standing")) as client:
        js = client.jetstream()
        await Topology().ensure(js)
        for pool in pools:
            await NatsWorkQueue(client).ensure_pool(pool)
        for _ in range(3):
            await js.publish(subjects.work_of(pools[7]), b"goal")
        pull = await js.pull_subscribe_bind("pool-pool7", "IOA_WORK")
        await pull.fetch(1)
        standing = {stream.name: stream for stream in (await read_standing(client)).streams}
    queues = {queue.name: (queue.waiting, queue.taken) for queue in standing["IOA_WORK"].queues}
    assert (queues.pop("pool-pool7"), set(queues.values()), len(queues)) == ((2, 1), {(0, 0)}, 300)
    assert sorted(standing) == sorted(STREAMS)
    assert (standing["IOA_WORK"].messages, standing["IOA_LOG"].stored_bytes) == (3, 0) < (standing["IOA_WORK"].stored_bytes,)


async def test_a_process_without_nats_is_not_ready_and_gets_ready_again(nats_server: NatsServer) -> None:
    """While the server is down its connection is named as missing; afterwards it is not, and the reconnect is counted."""
    before = _reconnects()
    async with open_connection(NatsSettings(nats_server.url, "ready")) as client:
        seen = [readiness.missing()]
        await crash(nats_server)
        seen.append(await eventually(readiness.missing))
        await nats_server.start()
        seen.append(await eventually(readiness.missing, lambda missing: not missing))
        await client.flush()
        counted = _reconnects() - before
    assert (seen, counted, readiness.missing()) == ([[], ["NATS"], []], 1, [])


def _reconnects() -> float:
    return REGISTRY.get_sample_value("ioa_nats_reconnects_total") or 0.0
