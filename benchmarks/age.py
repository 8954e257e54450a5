"""Measure what age costs: a system with very many goals that have ended, and very many memberships that are open.

    python -m benchmarks.age [--goals 1000000] [--memberships 500000] [--smoke]

The stores are filled through NATS with what the services would have written: a record, a log and a result for each goal,
encoded once and stored under other ids. A share of the goals is removed already, so that only what stays of it is there.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import itertools
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from nats.aio.client import Client
from rich.table import Table

from benchmarks import machine
from benchmarks.parts import note, run, temporary_folder
from ioa.adapters.nats.requests.request import NatsRequester
from ioa.adapters.nats.stores.goal_records import record_key
from ioa.adapters.nats.streams.topology import ENDED, GOAL_RECORDS, LOG, MEMBERS, RESULTS, Topology, stream_of, subject_of
from ioa.adapters.nats.system_client import NatsSystemClient
from ioa.adapters.nats.wire.connection import NatsSettings, open_connection
from ioa.adapters.nats.wire.embedded_server import NatsServer, open_nats_server
from ioa.adapters.system_clock import SystemClock
from ioa.errors import UnavailableError
from ioa.group.events import CancelRequested, Entry, Event, GroupLaunched, encode_entry
from ioa.group.machine import step
from ioa.group.state import Charter, GroupState, Limits
from ioa.protocol import subjects
from ioa.protocol.cards import AgentCard
from ioa.protocol.codec import encode
from ioa.protocol.goals import EndedGoal, Goal, GoalRecord, GoalResult, Reason
from ioa.protocol.ids import LOCAL, AgentId, CommId, GoalId, GoalName, PoolId, comm_id_of_goal
from ioa.protocol.operation.status import Prune, Pruned
from ioa.protocol.registry import Agents, GetAgents, Lease, Register, Renew
from tests.rig.deadline import eventually
from tests.rig.processes import open_services

_SERVICES = ("ioa_registry", "ioa_groups", "ioa_router")
_AGENTS = 100
_AGE = timedelta(days=10)
_REMOVED_SHARE = 4
"""Of so many goals one has been removed already."""
_FLUSH_EVERY = 500
_RENEW_SECONDS, _SHORT_RENEW_SECONDS = 30.0, 1.0
_REPEAT = 20
_PRUNE_SECONDS, _SHORT_PRUNE_SECONDS = 60.0, 2.0
_LONG = timedelta(minutes=15)
_PLACEHOLDER = GoalId("g" * 20)


class Findings:
    """What was measured: told as it comes, since all of it takes long, and as a table at the end."""

    def __init__(self) -> None:
        self.table = Table("what", "measured")

    def add(self, what: str, measured: str) -> None:
        """Tell one figure."""
        note(f"{what}: {measured}")
        self.table.add_row(what, measured)


@dataclass(frozen=True)
class Size:
    """How much is there, and how long each thing is measured."""

    goals: int
    memberships: int
    renew_seconds: float
    prune_seconds: float


def ids(count: int) -> Iterator[tuple[GoalId, CommId]]:
    """The goals, in the order of acceptance; all ids have one length, so that one can stand in for another in what is encoded."""
    for number in range(count):
        goal_id = GoalId(hashlib.sha256(str(number).encode()).hexdigest()[: len(_PLACEHOLDER)])
        yield goal_id, comm_id_of_goal(goal_id)


class Mould:
    """What the services write about one goal, to be cast for any other: its ids are replaced by others of the same length."""

    def __init__(self, now: datetime) -> None:
        ended_at = now - _AGE
        goal = Goal(goal_id=_PLACEHOLDER, goal="Compute the total revenue per region in sales.csv and make a bar chart of it.")
        comm_id = comm_id_of_goal(_PLACEHOLDER)
        cards = [AgentCard(agent_id=AgentId(name), name=name, description="Works.", pool=name) for name in ("lead", "worker")]
        charter = Charter(
            comm_id=comm_id,
            goal_id=_PLACEHOLDER,
            goal=goal.goal,
            owner=AgentId("lead"),
            team_members=tuple(cards),
            team_up_depth=0,
            limits=Limits(max_turns=40, deadline=ended_at + timedelta(hours=1)),
        )
        state: GroupState | None = None
        self._log: list[bytes] = []
        events: tuple[Event, ...] = (GroupLaunched(at=ended_at, charter=charter), CancelRequested(at=ended_at, why="Aged."))
        for event in events:
            state = step(state, event).state
            self._log.append(encode_entry(Entry(event=event, state=state, audience=())).data)
        result = GoalResult(
            goal_id=_PLACEHOLDER, reason=Reason.CONCLUDED, content="Done. " * 20, comm_id=comm_id, turns=3, finished_at=ended_at
        )
        self._record = encode(GoalRecord(goal=goal, accepted_at=ended_at, ticket_digest="0" * 64))
        self._result = encode(result)
        self._ended = encode(EndedGoal(goal_id=_PLACEHOLDER, reason=Reason.CONCLUDED, ended_at=ended_at))
        self._comm_id = comm_id.encode()

    def kept(self, goal_id: GoalId, comm_id: CommId) -> Iterator[tuple[str, bytes]]:
        """What there is of a goal that has ended."""
        yield subject_of(GOAL_RECORDS, record_key(comm_id, LOCAL)), self._cast(self._record, goal_id, comm_id)
        for entry in self._log:
            yield subjects.log(comm_id), self._cast(entry, goal_id, comm_id)
        yield subjects.result_of(GoalName(LOCAL, goal_id)), self._cast(self._result, goal_id, comm_id)

    def removed(self, goal_id: GoalId, comm_id: CommId) -> Iterator[tuple[str, bytes]]:
        """What stays of a goal that was removed."""
        yield subject_of(ENDED, comm_id), self._cast(self._ended, goal_id, comm_id)

    def _cast(self, data: bytes, goal_id: GoalId, comm_id: CommId) -> bytes:
        return data.replace(_PLACEHOLDER.encode(), goal_id.encode()).replace(self._comm_id, comm_id.encode())


async def fill(client: Client, size: Size) -> float:
    """Store everything, as fast as the server takes it, and return how many seconds that took."""
    mould, started, sent = Mould(SystemClock().now()), time.perf_counter(), 0
    counted: dict[str, int] = {}

    async def put(stream: str, messages: Iterator[tuple[str, bytes]]) -> None:
        nonlocal sent
        for subject, data in messages:
            await client.publish(subject, data)
            counted[stream] = counted.get(stream, 0) + 1
            sent += 1
            if sent % _FLUSH_EVERY == 0:
                await client.flush(timeout=60)

    for number, (goal_id, comm_id) in enumerate(ids(size.goals)):
        removed = number % _REMOVED_SHARE == 0
        await put(ENDED if removed else GOAL_RECORDS, (mould.removed if removed else mould.kept)(goal_id, comm_id))
    for number, (_, comm_id) in enumerate(ids(size.memberships)):
        await put(MEMBERS, iter([(subject_of(MEMBERS, f"aged-agent-{number % _AGENTS:02d}.{comm_id}"), b"")]))

    async def stored() -> int:
        names = (stream_of(GOAL_RECORDS), stream_of(ENDED), stream_of(MEMBERS), LOG, RESULTS)
        infos = [await client.jetstream().stream_info(name) for name in names]
        return sum(info.state.messages for info in infos)

    await eventually(stored, sent.__le__, within=_LONG)
    return time.perf_counter() - started


async def timed(work: Callable[[], Awaitable[object]]) -> float:
    """How many seconds something takes."""
    started = time.perf_counter()
    await work()
    return time.perf_counter() - started


async def renewals(client: Client, seconds: float) -> Sequence[float]:
    """Renew the leases of all agents again and again and return how long each took."""
    requester, took, pool = NatsRequester(client, timedelta(seconds=20)), list[float](), PoolId("aged")
    agents = [AgentId(f"aged-agent-{number:02d}") for number in range(_AGENTS)]
    for agent_id in agents:
        card = AgentCard(agent_id=agent_id, name=agent_id, description="Is there.", pool=pool)
        await requester.request(subjects.agent(pool, agent_id, subjects.REGISTER), Register(card=card), Lease)
    until = time.perf_counter() + seconds
    for agent_id in itertools.cycle(agents):
        started = time.perf_counter()
        if started > until:
            break
        with suppress(UnavailableError):  # then the time that was waited counts
            await requester.request(subjects.agent(pool, agent_id, subjects.RENEW), Renew(agent_id=agent_id, pool=pool), Lease)
        took.append(time.perf_counter() - started)
    return took


async def repeated(work: Callable[[], Awaitable[object]]) -> str:
    """The median and the longest of some repetitions, after one that warms up."""
    await work()
    took = [await timed(work) for _ in range(_REPEAT)]
    return f"{_ms(machine.percentile(took, 0.5))} (longest {_ms(max(took))})"


async def prune(client: Client, seconds: float) -> tuple[int, float]:
    """Remove goals for a while and return how many, and how long it took."""
    requester, after, goals, started = NatsRequester(client, timedelta(seconds=60)), 0, 0, time.perf_counter()
    while time.perf_counter() - started < seconds:
        done = await requester.request(
            subjects.admin(LOCAL, subjects.PRUNE), Prune(older_than=timedelta(days=1), after=after), Pruned
        )
        goals += sum(done.goals.values())
        assert not done.failed, done
        if done.after is None:
            break
        after = done.after
    return goals, time.perf_counter() - started


async def benchmark(size: Size) -> None:
    """Fill, measure and tell."""
    found = Findings()
    with temporary_folder() as folder:
        async with open_nats_server(folder / "nats", None, start_timeout=_LONG) as server:
            await measure(size, server, folder, found)
    machine.console.print(found.table)


async def measure(size: Size, server: NatsServer, folder: Path, found: Findings) -> None:
    """Measure everything on one server."""
    settings = NatsSettings(server.url, "age")
    async with open_connection(settings) as client:
        await Topology().ensure(client.jetstream())
        note("filling the stores")
        seconds = await fill(client, size)
        found.add("filling", f"{seconds:.0f} s")
    found.add("size of the stores", _size(await asyncio.to_thread(_bytes_of, folder / "nats")))
    note("restarting nats-server")
    await server.stop()
    found.add("nats-server: start", f"{await timed(server.start):.2f} s")
    found.add("nats-server: memory after the start", _size(machine.resident_bytes(server.pid)))
    env = {"IOA_LOG_LEVEL": "warning", "IOA_KEEP": str(timedelta(days=3650).total_seconds())}
    async with open_services(server.url, folder / "logs", env, show_logs=False) as services, open_connection(settings) as client:
        for module in _SERVICES:
            note(f"starting {module}")
            seconds = await timed(lambda module=module: services.start(module, replicas=1, within=_LONG))  # type: ignore[misc]
            pid = services.running(module)[0].pid
            found.add(f"{module}: ready after", f"{seconds:.2f} s, {_size(machine.resident_bytes(pid))}")
        note("renewing leases")
        took = await renewals(client, size.renew_seconds)
        found.add(f"renewals, {len(took):,}: median", _ms(machine.percentile(took, 0.5)))
        found.add("renewals: 99th percentile", _ms(machine.percentile(took, 0.99)))
        await lists(size, NatsSystemClient(client), found)
        note("restarting nats-server under the services")
        found.add("nats-server: memory", _size(machine.resident_bytes(server.pid)))
        await server.stop()
        seconds = await timed(server.start) + await timed(lambda: answers(client))
        found.add("nats-server and services: back after", f"{seconds:.2f} s")
        note("removing goals")
        goals, seconds = await prune(client, size.prune_seconds)
        found.add(f"removing {goals:,} goals", f"{goals / seconds:,.0f} goals/s")
        records = (await client.jetstream().stream_info(stream_of(GOAL_RECORDS))).state
        found.add("goals left on record", f"{records.messages:,}")
    found.add("size of the stores after that", _size(await asyncio.to_thread(_bytes_of, folder / "nats")))


async def lists(size: Size, system: NatsSystemClient, found: Findings) -> None:
    """Measure the pages of lists, and looking an id up."""
    note("reading lists")
    whole = [goal_id for number, (goal_id, _) in enumerate(ids(size.goals)) if number % _REMOVED_SHARE]
    first = await system.goals()
    middle = len(whole) // 2
    found.add("first page of goals", await repeated(system.goals))
    found.add("a page in the middle", await repeated(lambda: system.goals(before=middle)))
    found.add("first page of groups", await repeated(system.groups))
    found.add("one goal by its whole id", await repeated(lambda: system.find_goal(whole[middle])))
    found.add("one of the newest by the beginning of its id", await repeated(lambda: system.find_goal(whole[-1][:12])))
    assert [row.record.goal.goal_id for row in first.goals] == whole[: -len(first.goals) - 1 : -1]


async def answers(client: Client) -> None:
    """Return when registry and group setup answer after an interruption."""
    requester = NatsRequester(client, timedelta(seconds=1))

    async def once() -> bool:
        try:
            await requester.request(
                subjects.user(LOCAL, subjects.GET_AGENTS), GetAgents(agent_ids=(AgentId("aged-agent-00"),)), Agents
            )
            await requester.request(
                subjects.admin(LOCAL, subjects.PRUNE), Prune(older_than=timedelta(days=3650), dry_run=True), Pruned
            )
        except UnavailableError:
            return False
        return True

    await eventually(once, within=_LONG)


def _bytes_of(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def _size(count: int) -> str:
    return f"{count / 1_000_000:,.0f} MB"


def _ms(seconds: float) -> str:
    return f"{seconds * 1_000:.1f} ms"


def main() -> None:
    """Read the command line and measure."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--goals", type=int, default=1_000_000)
    parser.add_argument("--memberships", type=int, default=500_000)
    parser.add_argument("--smoke", action="store_true", help="2,000 goals and memberships, everything short")
    options = parser.parse_args()
    if options.smoke:
        size = Size(2_000, 2_000, _SHORT_RENEW_SECONDS, _SHORT_PRUNE_SECONDS)
    else:
        size = Size(options.goals, options.memberships, _RENEW_SECONDS, _PRUNE_SECONDS)
    machine.console.print(f"{size.goals:,} goals, {size.memberships:,} open memberships, on {machine.describe()}")
    run(benchmark(size))


if __name__ == "__main__":
    main()
