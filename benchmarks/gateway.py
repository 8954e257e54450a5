"""Measure what followers by HTTP cost a gateway, and whether they see the log whole when gateways are killed.

    python -m benchmarks.gateway [--followers 500] [--messages 200] [--kills 20] [--streams 50] [--seed 1]

All follow one goal. For the kills there are two gateways: one is killed with -9 in the middle of its streams, and whoever followed
there goes on at the other one behind the last event it has seen. Each stream has choices of its own: where in the log it begins, at
which gateway, after how many events it tears itself. What it has seen at the end is compared with the log; 20 kills with 50 streams
each are 1,000 seeds.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import random
import signal
import sys
import time
from asyncio.subprocess import Process
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

from rich.table import Table

from benchmarks import machine
from benchmarks.parts import note, run, temporary_folder
from ioa.adapters.nats.stores.api_keys import NatsApiKeys
from ioa.adapters.nats.wire.connection import NatsSettings, open_connection
from ioa.client.history import conversation
from ioa.concurrency import beside
from ioa.hosting.place import listens
from ioa.protocol.ids import CommId, GoalId, PoolId
from ioa.protocol.messages import Discussion
from ioa.telemetry.health import open_socket
from ioa_gateway.limits import MAX_REQUESTS
from ioa_testkit.planes import Plane, open_nats_plane
from tests.contract.system_client.members import ADA, BOB, Members, order
from tests.integration.gateway.serving import SECRET, key
from tests.rig.deadline import eventually

_TURNS = 5_000
_PATIENCE = timedelta(seconds=60)
_OF_A_KEY = MAX_REQUESTS // 2
"""How many streams a key opens: who tears one and comes back at once has two for a moment."""


@dataclass
class Follower:
    """Reads one stream, and goes on behind what it has seen."""

    path: str
    key_id: str
    seen: list[int] = field(default_factory=list)
    has_ended: bool = False

    async def follow(self, port: int) -> None:
        """Read to the end, and come again, as browsers do, where the stream ends before."""
        while not self.has_ended:
            await self._read(port)
            await asyncio.sleep(0.05)

    async def _read(self, port: int) -> None:
        with suppress(OSError):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            last = f"Last-Event-ID: {self.last()}\r\n" if self.last() else ""
            shown = f"Host: 127.0.0.1:{port}\r\nConnection: close\r\nAuthorization: Bearer ioa_{self.key_id}_{SECRET}\r\n"
            writer.write(f"GET {self.path} HTTP/1.1\r\n{shown}{last}\r\n".encode())
            try:
                await self._take(reader)
            finally:
                writer.close()

    async def _take(self, reader: asyncio.StreamReader) -> None:
        status = await reader.readline()
        if b" 200 " in status or b" 204 " in status:
            self.note_answer()
        self.has_ended = b" 204 " in status
        kind, seq = "", 0
        async for line in reader:  # an event counts when it is whole
            if line.startswith(b"event: "):
                kind = line[7:].decode().strip()
            elif line.startswith(b"id: "):
                seq = int(line[4:])
            elif line == b"\n":
                if kind == "end":
                    self.has_ended = True
                    return
                if kind == "entry":
                    self.seen.append(seq)
                    if self.has_enough():
                        return
                kind = ""

    def last(self) -> int:
        """Behind which sequence it goes on."""
        return self.seen[-1] if self.seen else 0

    def has_enough(self) -> bool:
        """Whether it tears its stream now."""
        return False

    def note_answer(self) -> None:
        """Note that a gateway has answered."""


@dataclass
class TornFollower(Follower):
    """Begins somewhere in the log, goes to any gateway, and tears its own stream now and then; all of it by its own chance.

    Attributes:
        ports: Of the gateways that are alive.
        first: The sequence of the group's first entry.
        most: How many entries there will be, at least.
        began: Behind which sequence it began.
        at: The port that it reads from now.
        torn: How often it has torn its stream itself.
    """

    chance: random.Random = field(kw_only=True)
    ports: list[int] = field(kw_only=True)
    first: int = field(kw_only=True)
    most: int = field(kw_only=True)
    began: int = 0
    at: int | None = None
    torn: int = 0
    _left: int = 0
    _answers: list[float] = field(default_factory=list)

    async def follow_any(self) -> None:
        """Read to the end."""
        self.began = self.chance.choice((0, self.first + self.chance.randrange(self.most)))
        while not self.has_ended:
            self._left = self.chance.randrange(1, 4 * self.most)  # many never tear anything themselves
            self.at = self.chance.choice(self.ports)
            await self._read(self.at)
            self.at = None
            await asyncio.sleep(self.chance.uniform(0, 0.1))

    def last(self) -> int:
        """Behind which sequence it goes on."""
        return super().last() or self.began

    def has_enough(self) -> bool:
        """Whether the stream is torn now."""
        self._left -= 1
        self.torn += self._left == 0
        return self._left == 0

    def note_answer(self) -> None:
        """Note when a gateway has answered."""
        self._answers.append(time.monotonic())

    def answered_after(self, at: float) -> float:
        """Return how long after a moment a gateway answered again, in seconds; 0 if all had been sent by then."""
        return next((one - at for one in self._answers if one > at), 0.0)


@asynccontextmanager
async def open_gateway(plane: Plane) -> AsyncIterator[tuple[int, Process]]:
    """Run a gateway as a process, and yield its port."""
    with open_socket("127.0.0.1", 0, "IOA_HTTP_PORT") as free:
        port: int = free.getsockname()[1]
    env = {**os.environ, "IOA_NATS_URL": plane.url or "", "IOA_HTTP_PORT": str(port), "IOA_LOG_LEVEL": "warning"}
    process = await asyncio.create_subprocess_exec(sys.executable, "-m", "ioa_gateway", env=env)
    try:
        await eventually(lambda: listens(f"http://127.0.0.1:{port}"), within=_PATIENCE)
        yield port, process
    finally:
        if process.returncode is None:
            process.terminate()
        await process.wait()


async def benchmark(followers: int, messages: int, kills: int, streams: int, seed: int) -> bool:
    """Measure both; return whether everybody has seen the log whole."""
    are_whole = True
    with temporary_folder() as folder:
        async with open_nats_plane(Path(folder) / "nats") as plane, AsyncExitStack() as stack:
            members = Members(plane)
            await stack.enter_async_context(
                beside(plane.network.take_goals(ADA, PoolId(ADA), members.given, max_concurrent=8, anybodys=False))
            )
            keys = await stack.enter_async_context(open_connection(NatsSettings(plane.url or "", "benchmark")))
            for number in range(max(followers, 2 * streams) // MAX_REQUESTS + 1):
                await NatsApiKeys(keys).put(key(f"k{number}"))
            if followers:
                are_whole &= await _measure(plane, members, followers, messages)
            if kills:
                are_whole &= await _kill(plane, members, messages, kills, streams, seed)
    return are_whole


async def _open(plane: Plane, members: Members, goal: str) -> CommId:
    goal_id = GoalId(goal)
    await members.register(ADA, BOB)  # nobody renews their leases
    await plane.client.submit(order(goal_id, max_turns=_TURNS, repetition="off"))
    await eventually(lambda: members.is_known(goal_id))
    return (await members.launch(goal_id)).state.comm_id


async def _talk(plane: Plane, members: Members, room: CommId, messages: int) -> None:
    """Have the group talk. Under load something is said twice, and refused then: whoever has the floor goes on."""
    while True:
        state = (await plane.client.group(room)).state
        speaker = state.floor_holder or ADA
        with suppress(AssertionError):
            if state.turns_taken >= messages:
                return await members.conclude(speaker, "Done.", room)
            other = BOB if speaker == ADA else ADA
            await members.say(speaker, Discussion(content=f"This is turn {state.turn}.", next_speaker=other), room)


async def _measure(plane: Plane, members: Members, followers: int, messages: int) -> bool:
    room = await _open(plane, members, "many")
    async with open_gateway(plane) as (port, process):
        readers = [Follower("/v1/goals/many/events", f"k{number // MAX_REQUESTS}") for number in range(followers)]
        empty = machine.resident_bytes(process.pid)
        async with asyncio.TaskGroup() as group:
            for at_once in (readers[:1], readers[1:]):
                for reader in at_once:
                    group.create_task(reader.follow(port))
                await eventually(lambda: all(reader.seen for reader in at_once), within=_PATIENCE)  # noqa: B023  # at once
            idle, cpu = machine.resident_bytes(process.pid), machine.cpu_seconds(process.pid)
            note(f"{followers} follow")
            await _talk(plane, members, room, messages)
        spent, full = machine.cpu_seconds(process.pid) - cpu, machine.resident_bytes(process.pid)
    log = [stored.seq for stored in await conversation(plane.client, room)]
    table = Table("followers", "events", "memory", "CPU an event each", "all equal to the log")
    events = sum(len(reader.seen) for reader in readers)
    whole = all(reader.seen == log and reader.has_ended for reader in readers)
    megabytes = f"{(idle - empty) / 1024**2:.0f} MB, then {(full - empty) / 1024**2:.0f} MB"
    table.add_row(str(followers), str(events), megabytes, f"{spent / events * 1_000:.3f} ms", str(whole))
    machine.console.print(table)
    return whole


async def _kill(plane: Plane, members: Members, messages: int, kills: int, streams: int, seed: int) -> bool:
    """Kill a gateway in the middle of many streams, again and again, and return whether all that was seen equals the log."""
    table = Table("kill", "streams", "cut by it", "back within", "torn besides", "equal to the log")
    are_whole = True
    async with AsyncExitStack() as stack:
        alive = await stack.enter_async_context(open_gateway(plane))
        for number in range(kills):
            doomed, alive = alive, await stack.enter_async_context(open_gateway(plane))
            ports, chance = [doomed[0], alive[0]], random.Random(seed + number)
            room = await _open(plane, members, f"kill-{number}")
            path, first = f"/v1/goals/kill-{number}/events", (await conversation(plane.client, room))[0].seq
            readers = [
                TornFollower(
                    *(path, f"k{one // _OF_A_KEY}"),
                    chance=random.Random(f"{seed} {number} {one}"),
                    ports=ports,
                    first=first,
                    most=messages,
                )
                for one in range(streams)
            ]
            async with asyncio.TaskGroup() as group:
                for reader in readers:
                    group.create_task(reader.follow_any())
                group.create_task(_talk(plane, members, room, messages))
                wanted = chance.randrange(1, messages)
                await eventually(lambda: any(len(one.seen) >= wanted for one in readers), within=_PATIENCE)  # noqa: B023  # called here
                del ports[0]  # who comes back goes on at the other one
                at = time.monotonic()
                cut = [reader for reader in readers if reader.at == doomed[0]]
                doomed[1].send_signal(signal.SIGKILL)
            log = [stored.seq for stored in await conversation(plane.client, room)]
            whole = all(one.has_ended and one.seen == [seq for seq in log if seq > one.began] for one in readers)
            back = max((one.answered_after(at) for one in cut), default=0.0)
            are_whole = are_whole and whole
            torn = sum(one.torn for one in readers)
            table.add_row(str(number), str(streams), str(len(cut)), f"{back:.2f} s", str(torn), str(whole))
    machine.console.print(table)
    machine.console.print(
        f"{kills * streams:,} streams, each with its own choices: {'all' if are_whole else 'NOT all'} equal to the log."
    )
    return are_whole


def main() -> None:
    """Read the command line and measure; exit with 1 if somebody has not seen the log whole."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--followers", type=int, default=500)
    parser.add_argument("--messages", type=int, default=200)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--streams", type=int, default=50, help="that follow while a gateway is killed, each a seed of its own")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    machine.console.print(f"{options.followers} followers, {options.kills} kills, on {machine.describe()}")
    are_whole: list[bool] = []

    async def measured() -> None:
        are_whole.append(await benchmark(options.followers, options.messages, options.kills, options.streams, options.seed))

    run(measured())
    raise SystemExit(are_whole != [True])


if __name__ == "__main__":
    main()
