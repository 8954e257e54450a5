"""Measure what files cost that are asked for from group setup, beside clients that read and write the store themselves.

    python -m benchmarks.files [--megabytes 100] [--at-once 8]

One file is put and read again: chunk by chunk, as every client did before, and through group setup. Then so many users do so at
once. Meanwhile somebody asks group setup for something else, again and again, on a connection of its own.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import os
import time
from collections.abc import Awaitable, Callable
from datetime import timedelta

from nats.aio.client import Client
from nats.js import JetStreamContext
from nats.js.errors import NotFoundError as NoMessageError
from rich.table import Table

from benchmarks import machine
from benchmarks.parts import Parts, note, open_parts, run
from ioa.adapters.nats.requests.request import NatsRequester
from ioa.adapters.nats.streams.topology import FILES
from ioa.adapters.nats.wire.connection import NatsSettings, open_connection
from ioa.concurrency import beside
from ioa.errors import NotFoundError, UnavailableError
from ioa.protocol import subjects
from ioa.protocol.goals import Announced, Artifact
from ioa.protocol.ids import LOCAL, GoalId, UserId
from ioa.protocol.setup.files import (
    FilePiece,
    GetFile,
    PutStanding,
    PutUpload,
    Stored,
    put_in_pieces,
    stream_in_pieces,
    whole,
)
from ioa.protocol.teams.stored_teams import GetTeam, NamedTeam, TeamName

_DIRECT, _CHUNK_BYTES = f"$O.{FILES}.C.direct", 128 * 1024


class User:
    """Puts and reads files as a user does."""

    def __init__(self, requester: NatsRequester, name: str) -> None:
        self._requester = requester
        self._user = UserId(name)

    async def put(self, data: bytes) -> Artifact:
        """Put a file."""

        async def one(file: Announced, standing: PutStanding | None, piece: bytes) -> Stored:
            request = PutUpload(goal_id=GoalId("goal"), place=file.sha256, file=file, standing=standing, data=piece)
            return await self._requester.request(subjects.user(self._user, subjects.PUT_UPLOAD), request, Stored)

        return await put_in_pieces("file.bin", data, "application/octet-stream", one)

    async def get(self, file: Artifact) -> bytes:
        """Read it again."""

        async def one(after: int) -> FilePiece:
            request = GetFile(object_name=file.object_name, sha256=file.sha256, after=after)
            return await self._requester.request(subjects.user(self._user, subjects.GET_UPLOAD), request, FilePiece)

        return await whole(stream_in_pieces(file, one))


async def _put_directly(js: JetStreamContext, data: bytes) -> None:
    for at in range(0, len(data), _CHUNK_BYTES):
        await js.publish(_DIRECT, data[at : at + _CHUNK_BYTES])


async def _read_directly(js: JetStreamContext) -> bytes:
    found, seq = bytearray(), 0
    while True:
        try:
            message = await js.get_msg(f"OBJ_{FILES}", seq=seq + 1, subject=_DIRECT, next=True)
        except NoMessageError:
            return bytes(found)
        seq = message.seq or 0
        found += message.data or b""


async def _asking(requester: NatsRequester, seconds: list[float]) -> None:
    """Request a team that does not exist from group setup, repeatedly."""
    while True:
        started = time.perf_counter()
        try:
            await requester.request(subjects.user(LOCAL, subjects.GET_TEAM), GetTeam(name=TeamName("missing")), NamedTeam)
        except NotFoundError:
            seconds.append(time.perf_counter() - started)
        await asyncio.sleep(0.005)


class _Measuring:
    """Rows of a table of what was measured."""

    def __init__(self, parts: Parts, asking: Client) -> None:
        self._parts = parts
        self._setup = parts.pids("ioa_groups")
        self._requester = NatsRequester(asking)
        self.table = Table("what", "MB/s", "CPU ms/MB: setup", "server", "client", "setup, MB", "others wait p50, ms", "p99")

    async def row(self, what: str, megabytes: float, work: Callable[[], Awaitable[object]]) -> None:
        """Do some work and note how fast it went, what it cost, and how long others waited."""
        waited: list[float] = []
        before = sum(map(machine.resident_bytes, self._setup))
        pids = {"setup": self._setup, "server": [self._parts.server_pid], "client": [os.getpid()]}
        started = time.perf_counter()
        async with beside(_asking(self._requester, waited)):
            with machine.measured(pids) as spent:
                await work()
                seconds = time.perf_counter() - started
        cpu = [f"{spent.by_part[part] * 1_000 / megabytes:.1f}" for part in pids]
        grown = f"{before / 1e6:.0f} → {sum(map(machine.resident_bytes, self._setup)) / 1e6:.0f}"
        waits = [f"{machine.percentile(waited, share) * 1_000:.1f}" if waited else "none asked" for share in (0.5, 0.99)]
        self.table.add_row(what, f"{megabytes / seconds:.0f}", *cpu, grown, *waits)


async def benchmark(megabytes: int, at_once: int) -> None:
    """Measure one file both ways, then several."""
    async with (
        open_parts(ioa_groups=1) as parts,
        open_connection(NatsSettings(parts.url, "asking"), patience=timedelta(seconds=10)) as asking,
    ):
        js, requester = parts.client.jetstream(), NatsRequester(parts.client)
        measuring, user, data = _Measuring(parts, asking), User(requester, "user"), os.urandom(megabytes * 1_000_000)
        warm = await _until_served(user)
        assert await user.get(warm) == b"warm"
        note("directly")
        await measuring.row("put directly", megabytes, lambda: _put_directly(js, data))
        await measuring.row("read directly", megabytes, lambda: _read_directly(js))
        note("through group setup")
        await measuring.row("put", megabytes, lambda: user.put(data))
        digest = hashlib.sha256(data).hexdigest()
        file = await user.put(data)
        assert file.sha256 == digest
        await measuring.row("read", megabytes, lambda: user.get(file))
        note(f"{at_once} at once")
        share = len(data) // at_once
        users = {User(requester, f"user-{number}"): data[number * share : (number + 1) * share] for number in range(at_once)}
        files: dict[User, Artifact] = {}

        async def put(one: User) -> None:
            files[one] = await one.put(users[one])

        async def all_put() -> None:
            await asyncio.gather(*map(put, users))

        async def all_read() -> None:
            await asyncio.gather(*(one.get(files[one]) for one in users))

        await measuring.row(f"put, {at_once} at once", megabytes, all_put)
        await measuring.row(f"read, {at_once} at once", megabytes, all_read)
        await measuring.row("nothing, for a second", megabytes, lambda: asyncio.sleep(1))
    machine.console.print(f"{megabytes} MB on {machine.describe()}")
    machine.console.print(measuring.table)


async def _until_served(user: User) -> Artifact:
    async with asyncio.timeout(timedelta(seconds=30).total_seconds()):
        while True:
            try:
                return await user.put(b"warm")
            except UnavailableError:
                await asyncio.sleep(0.1)


def main() -> None:
    """Read the options and measure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--megabytes", type=int, default=100)
    parser.add_argument("--at-once", type=int, default=8)
    options = parser.parse_args()
    run(benchmark(options.megabytes, options.at_once))


if __name__ == "__main__":
    main()
