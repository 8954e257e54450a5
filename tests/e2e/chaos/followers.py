"""Clients that follow a goal by server-sent events, at gateways that are killed.

A killed gateway's followers continue at the other gateway after the last event that they received. Each follower's own random
numbers decide where in the log it begins, at which gateway, and after how many events it disconnects by itself.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from asyncio.subprocess import Process
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from random import Random

from benchmarks import machine
from ioa.adapters.nats.stores.api_key_store import NatsApiKeys
from ioa.adapters.nats.wire.connection import NatsSettings, open_connection
from ioa.client.history import conversation
from ioa.concurrency import beside
from ioa.hosting.place import listens
from ioa.protocol.ids import CommId, GoalId, PoolId
from ioa.protocol.messages import Discussion
from ioa.telemetry.health import open_socket
from ioa_gateway.key_limits import MAX_REQUESTS
from ioa_testkit.planes import Plane, open_nats_plane
from tests.contract.system_client.members import ADA, BOB, Members, order
from tests.integration.gateway.serving import SECRET, key
from tests.rig.deadline import eventually

_TURNS = 5_000
_PATIENCE = timedelta(seconds=60)
_OF_A_KEY = MAX_REQUESTS // 2
"""Streams per key. A follower that disconnects and returns at once has two streams for a moment."""


@dataclass
class Follower:
    """Reads one stream, and resumes it after the last event."""

    path: str
    key_id: str
    seen: list[int] = field(default_factory=list)
    has_ended: bool = False

    async def follow(self, port: int) -> None:
        """Read to the end, and reconnect, as browsers do, if the stream ends earlier."""
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
        """Return the sequence after which it resumes."""
        return self.seen[-1] if self.seen else 0

    def has_enough(self) -> bool:
        """Whether it disconnects now."""
        return False


@dataclass
class RandomFollower(Follower):
    """Begins anywhere in the log, reads from any gateway, and disconnects now and then.

    Attributes:
        ports: The ports of the running gateways.
        first: The sequence of the group's first entry.
        entries: Minimum number of entries of the log.
        began: The sequence after which it began.
    """

    random: Random = field(kw_only=True)
    ports: list[int] = field(kw_only=True)
    first: int = field(kw_only=True)
    entries: int = field(kw_only=True)
    began: int = 0
    _left: int = 0

    async def follow_any(self) -> None:
        """Read to the end."""
        self.began = self.random.choice((0, self.first + self.random.randrange(self.entries)))
        while not self.has_ended:
            self._left = self.random.randrange(1, 4 * self.entries)  # many never disconnect
            await self._read(self.random.choice(self.ports))
            await asyncio.sleep(self.random.uniform(0, 0.1))

    def last(self) -> int:
        """Return the sequence after which it resumes."""
        return super().last() or self.began

    def has_enough(self) -> bool:
        """Whether it disconnects now."""
        self._left -= 1
        return self._left == 0


@asynccontextmanager
async def open_gateway(plane: Plane) -> AsyncIterator[tuple[int, Process]]:
    """Run a gateway as a process, and yield its port and the process."""
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


@asynccontextmanager
async def open_chat(folder: Path, keys: int) -> AsyncIterator[Chat]:
    """Run a system without a gateway, with API keys `k0`, `k1`, … that may follow goals."""
    async with open_nats_plane(folder / "nats") as plane:
        members = Members(plane)
        goals = plane.network.take_goals(ADA, PoolId(ADA), members.given, max_concurrent=8, anybodys=False)
        async with beside(goals), open_connection(NatsSettings(plane.url or "", "test")) as connection:
            for number in range(keys):
                await NatsApiKeys(connection).put(key(f"k{number}"))
            yield Chat(plane, members)


@dataclass(frozen=True)
class Chat:
    """A system in which two agents talk."""

    plane: Plane
    members: Members

    async def open(self, goal: str) -> CommId:
        """Publish a goal, and open its group."""
        goal_id = GoalId(goal)
        await self.members.register(ADA, BOB)  # their leases are not renewed
        await self.plane.client.submit(order(goal_id, max_turns=_TURNS, repetition="off"))
        await eventually(lambda: self.members.is_known(goal_id))
        return (await self.members.launch(goal_id)).state.comm_id

    async def talk(self, comm_id: CommId, messages: int) -> None:
        """Let the members talk and conclude. Under load a message may be sent twice, and is rejected then."""
        while True:
            state = (await self.plane.client.group(comm_id)).state
            speaker = state.floor_holder or ADA
            with suppress(AssertionError):
                if state.turns_taken >= messages:
                    return await self.members.conclude(speaker, "Done.", comm_id)
                other = BOB if speaker == ADA else ADA
                await self.members.say(speaker, Discussion(content=f"This is turn {state.turn}.", next_speaker=other), comm_id)

    async def log(self, comm_id: CommId) -> list[int]:
        """Return the sequences of all entries of a group."""
        return [stored.seq for stored in await conversation(self.plane.client, comm_id)]


async def follow_with_many(folder: Path, followers: int, messages: int) -> tuple[int, bool]:
    """Let clients follow one goal; return the bytes of memory that they need, and whether all received the log."""
    async with open_chat(folder, followers // MAX_REQUESTS + 1) as chat:
        comm_id = await chat.open("many")
        async with open_gateway(chat.plane) as (port, process):
            readers = [Follower("/v1/goals/many/events", f"k{number // MAX_REQUESTS}") for number in range(followers)]
            before = machine.resident_bytes(process.pid)
            async with asyncio.TaskGroup() as group:
                for batch in (readers[:1], readers[1:]):
                    for reader in batch:
                        group.create_task(reader.follow(port))
                    await eventually(lambda: all(reader.seen for reader in batch), within=_PATIENCE)  # noqa: B023 - called here
                await chat.talk(comm_id, messages)
            memory = machine.resident_bytes(process.pid) - before
        log = await chat.log(comm_id)
        return memory, all(reader.seen == log and reader.has_ended for reader in readers)


async def follow_during_kills(folder: Path, kills: int, streams: int, messages: int, seed: int) -> list[str]:
    """Kill a gateway in the middle of many streams, again and again; return the streams that differ from the log."""
    wrong = list[str]()
    async with open_chat(folder, streams // _OF_A_KEY + 1) as chat, AsyncExitStack() as stack:
        running = await stack.enter_async_context(open_gateway(chat.plane))
        for number in range(kills):
            killed, running = running, await stack.enter_async_context(open_gateway(chat.plane))
            ports, random = [killed[0], running[0]], Random(seed + number)
            comm_id = await chat.open(f"kill-{number}")
            first = (await chat.log(comm_id))[0]
            readers = [
                RandomFollower(
                    f"/v1/goals/kill-{number}/events",
                    f"k{one // _OF_A_KEY}",
                    random=Random(f"{seed} {number} {one}"),
                    ports=ports,
                    first=first,
                    entries=messages,
                )
                for one in range(streams)
            ]
            async with asyncio.TaskGroup() as group:
                for reader in readers:
                    group.create_task(reader.follow_any())
                group.create_task(chat.talk(comm_id, messages))
                wanted = random.randrange(1, messages)
                await eventually(lambda: any(len(one.seen) >= wanted for one in readers), within=_PATIENCE)  # noqa: B023 - called here
                del ports[0]  # followers that return use the other gateway
                killed[1].send_signal(signal.SIGKILL)
            log = await chat.log(comm_id)
            wrong += [
                f"stream {one} of kill {number}: {reader.seen}, began after {reader.began}, log {log}"
                for one, reader in enumerate(readers)
                if not reader.has_ended or reader.seen != [seq for seq in log if seq > reader.began]
            ]
    return wrong
