"""Measure what followers by HTTP cost a gateway, and whether they see the log whole when gateways are killed.

    python -m benchmarks.gateway [--followers 500] [--messages 200] [--kills 20] [--seed 1]

All follow one goal. For the kills there are two gateways: one is killed with -9 in the middle of a stream, and the follower goes on
at the other one behind the last event it has seen; what it has seen at the end is compared with the log.
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
from ioa.adapters.nats.api_keys import NatsApiKeys
from ioa.adapters.nats.connection import NatsSettings, open_connection
from ioa.beside import beside
from ioa.client.history import conversation
from ioa.hosting.place import listens
from ioa.protocol.ids import CommId, GoalId, PoolId
from ioa.protocol.messages import Discussion
from ioa_gateway.limits import STREAMS
from ioa_gateway.server import bound
from ioa_testkit.planes import Plane, open_nats_plane
from tests.contract.system_client.members import ADA, BOB, Members, order
from tests.integration.gateway.serving import SECRET, key
from tests.rig.deadline import eventually

_TURNS = 5_000
_PATIENCE = timedelta(seconds=60)


@dataclass
class Follower:
    """Reads one stream, and goes on behind what it has seen."""

    path: str
    key_id: str
    seen: list[int] = field(default_factory=list)
    has_ended: bool = False

    async def follow(self, port: int) -> None:
        """Read to the end of the stream, or of the gateway."""
        try:
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            last = f"Last-Event-ID: {self.seen[-1]}\r\n" if self.seen else ""
            shown = f"Host: 127.0.0.1:{port}\r\nConnection: close\r\nAuthorization: Bearer ioa_{self.key_id}_{SECRET}\r\n"
            writer.write(f"GET {self.path} HTTP/1.1\r\n{shown}{last}\r\n".encode())
            kind = ""
            async for line in reader:
                if line.startswith(b"event: "):
                    kind = line[7:].decode().strip()
                elif line.startswith(b"id: ") and kind == "entry":
                    self.seen.append(int(line[4:]))
                elif line == b"\r\n" and kind == "end":
                    self.has_ended = True
                    break
            writer.close()
        except OSError:
            pass


@asynccontextmanager
async def open_gateway(plane: Plane) -> AsyncIterator[tuple[int, Process]]:
    """Run a gateway as a process, and yield its port."""
    with bound("127.0.0.1", 0) as free:
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


async def benchmark(followers: int, messages: int, kills: int, seed: int) -> None:
    """Measure both."""
    with temporary_folder() as folder:
        async with open_nats_plane(Path(folder) / "nats") as plane, AsyncExitStack() as stack:
            members = Members(plane)
            await stack.enter_async_context(
                beside(plane.network.take_goals(ADA, PoolId(ADA), members.given, max_concurrent=8, anybodys=False))
            )
            await members.register(ADA, BOB)
            keys = await stack.enter_async_context(open_connection(NatsSettings(plane.url or "", "benchmark")))
            for number in range(max(followers, kills) // STREAMS + 1):
                await NatsApiKeys(keys).put(key(f"k{number}"))
            if followers:
                await _measure(plane, members, followers, messages)
            if kills:
                await _kill(plane, members, messages, kills, random.Random(seed))


async def _open(plane: Plane, members: Members, goal: str) -> CommId:
    goal_id = GoalId(goal)
    await plane.client.launch(order(goal_id, max_turns=_TURNS, repetition="off"))
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


async def _measure(plane: Plane, members: Members, followers: int, messages: int) -> None:
    room = await _open(plane, members, "many")
    async with open_gateway(plane) as (port, process):
        readers = [Follower("/v1/goals/many/events", f"k{number // STREAMS}") for number in range(followers)]
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


async def _kill(plane: Plane, members: Members, messages: int, kills: int, chance: random.Random) -> None:
    table = Table("kill", "seen at the first", "back after", "equal to the log")
    for number in range(kills):
        goal = f"kill-{number}"
        room = await _open(plane, members, goal)
        reader = Follower(f"/v1/goals/{goal}/events", f"k{number // STREAMS}")
        async with open_gateway(plane) as (first, process), open_gateway(plane) as (second, _):
            async with asyncio.TaskGroup() as group:
                group.create_task(_talk(plane, members, room, messages))
                following = group.create_task(reader.follow(first))
                wanted = chance.randrange(1, messages)
                await eventually(lambda: len(reader.seen) >= wanted)  # noqa: B023  # it is called here
                process.send_signal(signal.SIGKILL)
                await following
                at, since = len(reader.seen), time.monotonic()
                again = group.create_task(reader.follow(second))
                await eventually(lambda: len(reader.seen) > at or again.done())  # noqa: B023
                back = time.monotonic() - since
            log = [stored.seq for stored in await conversation(plane.client, room)]
            table.add_row(str(number), str(at), f"{back:.2f} s", str(reader.seen == log and reader.has_ended))
    machine.console.print(table)


def main() -> None:
    """Read the command line and measure."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--followers", type=int, default=500)
    parser.add_argument("--messages", type=int, default=200)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    machine.console.print(f"{options.followers} followers, {options.kills} kills, on {machine.describe()}")
    run(benchmark(options.followers, options.messages, options.kills, options.seed))


if __name__ == "__main__":
    main()
