"""Measure what programs wait for that look at a system: pages of many goals, and any place of a long conversation.

    python -m benchmarks.client [--goals 10000] [--entries 10000] [--repeat 100] [--idle 200] [--seconds 30] [--nodes 3]

The stores of one nats-server, or of three that keep each stream in as many copies, are filled with goals that have ended, one in
ten with a label, and between them with the entries of a group. Only the service of read requests runs, in this process. At last
`--idle` clients follow groups without events, and their requests to NATS are counted.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import timedelta

from nats.aio.client import Client as Connection
from rich.table import Table

from benchmarks import machine
from benchmarks.age import Mould, ids
from benchmarks.parts import note, run, temporary_folder
from ioa.adapters.nats.stores.goal_records import record_key
from ioa.adapters.nats.streams.topology import GOAL_RECORDS, LOG, Topology, subject_of
from ioa.adapters.nats.wire.connection import NatsSettings, open_connection
from ioa.adapters.nats.wire.embedded_server import open_nats_server
from ioa.adapters.system_clock import SystemClock
from ioa.client.client import END, Client, Group
from ioa.concurrency import beside
from ioa.protocol import subjects
from ioa.protocol.codec import decode, encode
from ioa.protocol.goals import GoalRecord
from ioa.protocol.ids import LOCAL, CommId, GoalId, comm_id_of_goal
from tests.rig.deadline import eventually
from tests.rig.nats_cluster import NODES, open_nats_cluster
from tests.rig.reads import open_read_service

_LONG = GoalId("l" * 20)
_SETTLED_SECONDS = 5
"""After an entry a follower looks several times for the next one, within about a second."""
_ROOM = comm_id_of_goal(_LONG)
_LABELLED_SHARE = 10
_FLUSH_EVERY = 200
_SYNC_INTERVAL = "1s"
_PATIENCE = timedelta(seconds=10)


async def fill(connection: Connection, goals: int, entries: int) -> None:
    """Store the goals, and evenly between them the entries of the one group."""
    mould, number = Mould(SystemClock().now()), 0
    of_room = itertools.repeat(next(data for subject, data in mould.kept(_LONG, _ROOM) if subject == subjects.log(_ROOM)))
    for number, (goal_id, comm_id) in enumerate(ids(goals)):
        for subject, data in mould.kept(goal_id, comm_id):
            if number % _LABELLED_SHARE == 0 and subject == subject_of(GOAL_RECORDS, record_key(comm_id, LOCAL)):
                record = decode(GoalRecord, data)
                data = encode(record.model_copy(update={"goal": record.goal.model_copy(update={"labels": {"team": "x"}})}))
            await connection.publish(subject, data)
        for _ in range(entries * number // goals, entries * (number + 1) // goals):
            await connection.publish(subjects.log(_ROOM), next(of_room))
        if number % _FLUSH_EVERY == 0:
            await connection.flush(timeout=60)

    async def stored() -> int:
        return (await connection.jetstream().stream_info(LOG)).state.messages

    await eventually(stored, (2 * goals + entries).__le__, within=timedelta(minutes=2))


def _idle_goal(number: int) -> GoalId:
    return GoalId(f"i{number:019}")


async def count_idle(connection: Connection, client: Client, idle: int, seconds: float) -> int:
    """Count what is asked of JetStream while so many follow groups in which nothing happens."""
    mould, begun = Mould(SystemClock().now()), asyncio.Barrier(idle + 1)
    rooms = [comm_id_of_goal(goal_id) for goal_id in map(_idle_goal, range(idle))]
    for number, room in enumerate(rooms):
        opened = next(data for subject, data in mould.kept(_idle_goal(number), room) if subject == subjects.log(room))
        await connection.publish(subjects.log(room), opened)
    await connection.flush(timeout=60)

    async def follow(room: CommId) -> None:
        async for _ in client.follow(Group(room)):
            await begun.wait()

    async with beside(*map(follow, rooms)):
        await begun.wait()
        await asyncio.sleep(_SETTLED_SECONDS)
        asked = await connection.subscribe("$JS.API.>")
        await asyncio.sleep(seconds)
        return asked.pending_msgs


@asynccontextmanager
async def open_stores(nodes: int) -> AsyncIterator[Connection]:
    """Connect to a server of its own, or to a cluster whose streams have a copy on each node. Both sync once a second."""
    with temporary_folder() as folder:
        opening = open_nats_server(folder, None) if nodes == 1 else open_nats_cluster(folder, sync_interval=_SYNC_INTERVAL)
        async with opening as nats, open_connection(NatsSettings(nats.url, "benchmark"), patience=_PATIENCE) as connection:
            await Topology(replicas=nodes).ensure(connection.jetstream())
            async with open_connection(NatsSettings(nats.url, "reads"), patience=_PATIENCE) as reader, open_read_service(reader):
                yield connection


async def measure(goals: int, entries: int, repeat: int, idle: int, seconds: float, nodes: int) -> None:
    """Fill, measure and tell."""
    table = Table("what", "median", "p95")
    async with open_stores(nodes) as connection:
        note("filling the stores")
        await fill(connection, goals, entries)
        client = Client(connection)
        [newest] = await client.entries(Group(_ROOM), before=END, limit=1)
        middle, room = newest.seq // 2, Group(_ROOM)

        async def add(what: str, work: Callable[[], Awaitable[object]]) -> None:
            await work()
            took = []
            for _ in range(repeat):
                started = time.perf_counter()
                await work()
                took.append(time.perf_counter() - started)
            table.add_row(what, *(f"{machine.percentile(took, share) * 1_000:.1f} ms" for share in (0.5, 0.95)))

        await add("50 goals, the newest", client.goals)
        await add("50 goals in the middle", lambda: client.goals(before=goals // 2))
        await add("50 goals with a label that one in ten bears", lambda: client.goals(labels={"team": "x"}))
        await add("how a group stands", lambda: client.state(room))
        await add("how it stood at an entry in the middle", lambda: client.state(room, at=middle))
        await add("its last 50 entries", lambda: client.entries(room, before=END, limit=50))
        await add("50 entries before the middle", lambda: client.entries(room, before=middle, limit=50))
        await add("50 entries behind the middle", lambda: client.entries(room, after=middle, limit=50))
        await add("500 entries from the first", lambda: client.group_entries(_ROOM, limit=500))
        asked = await count_idle(connection, client, idle, seconds) if idle else 0
    machine.console.print(table)
    machine.console.print(f"{idle} idle followers asked NATS {asked} times in {seconds:g} s")


def main() -> None:
    """Read the command line and measure."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.client", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--goals", type=int, default=10_000)
    parser.add_argument("--entries", type=int, default=10_000)
    parser.add_argument("--repeat", type=int, default=100)
    parser.add_argument("--idle", type=int, default=200)
    parser.add_argument("--seconds", type=float, default=30)
    parser.add_argument(
        "--nodes", type=int, choices=(1, NODES), default=1, help="so many nats-servers, each with a copy of everything"
    )
    options = parser.parse_args()
    machine.console.print(
        f"{options.goals:,} goals, {options.entries:,} entries, {options.nodes} nats-servers, on {machine.describe()}"
    )
    run(measure(**vars(options)))


if __name__ == "__main__":
    main()
