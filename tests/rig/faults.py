"""Faults of a system: each fault begins, lasts as long as the test decides, and is repaired. Random faults and outages use them."""

from __future__ import annotations

import asyncio
import contextlib
import shutil
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Protocol

import msgpack
import nats.errors

from ioa.adapters.nats.streams.topology import CARDS, ENDED, FILES, GOAL_RECORDS, LEASES, LOG, MEMBERS, OPEN, SESSIONS
from ioa.adapters.nats.wire.embedded_server import NatsServer
from ioa.adapters.nats.wire.translated_errors import unavailable_unless_answered
from ioa.agent.send import until_answered
from ioa.protocol import subjects
from ioa.protocol.ids import LOCAL, AgentId, CommId, GoalId, GoalName
from tests.rig.fleet import WORKERS, Fleet
from tests.rig.nats_server import crash
from tests.rig.small_volume import SmallVolume
from tests.rig.standstill import freeze, thaw


@dataclass(frozen=True)
class Site:
    """Where faults happen: the processes, and the nats-servers that they share.

    `servers` is empty for the second tenant of these servers: its faults do not repeat faults of the servers.
    """

    fleet: Fleet
    servers: Sequence[NatsServer]

    @property
    def server(self) -> NatsServer:
        """The only server."""
        [server] = self.servers
        return server


class Fault(Protocol):
    """Something that goes wrong, and is repaired."""

    @property
    def what(self) -> str:
        """Name it, as a table does."""

    async def begin(self, site: Site) -> None:
        """Let it go wrong."""

    async def end(self, site: Site) -> None:
        """Repair it, and whatever else it has broken that nobody else repairs."""


@asynccontextmanager
async def suffered(fault: Fault, site: Site) -> AsyncIterator[None]:
    """Have a fault for as long as the block runs; it is repaired in any case."""
    await fault.begin(site)
    try:
        yield
    finally:
        await fault.end(site)


@dataclass(frozen=True)
class Killed:
    """Processes end by SIGKILL and are away for a while."""

    names: Sequence[str]

    @property
    def what(self) -> str:
        """Name it."""
        return f"{_together(self.names)} killed"

    async def begin(self, site: Site) -> None:
        """Kill them all at once."""
        await asyncio.gather(*(site.fleet.kill(name) for name in self.names if site.fleet.is_running(name)))

    async def end(self, site: Site) -> None:
        """Start them."""
        await site.fleet.start(*self.names)


@dataclass(frozen=True)
class Stopped:
    """Processes end in good order and are away for a while."""

    names: Sequence[str]

    @property
    def what(self) -> str:
        """Name it."""
        return f"{_together(self.names)} restarted in good order"

    async def begin(self, site: Site) -> None:
        """Stop them all at once."""
        await asyncio.gather(*(site.fleet.stop(name) for name in self.names if site.fleet.is_running(name)))

    async def end(self, site: Site) -> None:
        """Start them."""
        await site.fleet.start(*self.names)


@dataclass(frozen=True)
class Wiped(Killed):
    """Agents are killed, and remember nothing when they come back."""

    @property
    def what(self) -> str:
        """Name it."""
        return f"{_together(self.names)} robbed of memory"

    async def end(self, site: Site) -> None:
        """Take their memory, and start them."""
        for name in self.names:
            await site.fleet.wipe(name)
        await super().end(site)


@dataclass(frozen=True)
class Frozen:
    """Processes stand still; their connections stay open, and whoever asks them waits."""

    names: Sequence[str]

    @property
    def what(self) -> str:
        """Name it."""
        return f"{_together(self.names)} frozen"

    async def begin(self, site: Site) -> None:
        """Stop them."""
        for name in self.names:
            if site.fleet.is_running(name):
                site.fleet.freeze(name)

    async def end(self, site: Site) -> None:
        """Let them go on."""
        for name in self.names:
            site.fleet.thaw(name)


@dataclass(frozen=True)
class ClockOff:
    """A process's clock steps, and steps back."""

    name: str
    ahead: timedelta

    @property
    def what(self) -> str:
        """Name it."""
        return f"{_part(self.name)}'s clock {self.ahead.total_seconds():+g} s"

    async def begin(self, site: Site) -> None:
        """Set it."""
        site.fleet.set_clock(self.name, self.ahead)

    async def end(self, site: Site) -> None:
        """Set it right."""
        site.fleet.set_clock(self.name, timedelta(0))


@dataclass(frozen=True)
class MemoryLocked:
    """A worker's agents cannot write their memory."""

    worker: str

    @property
    def what(self) -> str:
        """Name it."""
        return "worker's memory locked"

    async def begin(self, site: Site) -> None:
        """Lock the memory files."""
        if site.fleet.is_running(self.worker):
            site.fleet.lock_memory(self.worker)

    async def end(self, site: Site) -> None:
        """Unlock the memory files."""
        site.fleet.unlock_memory(self.worker)


@dataclass(frozen=True)
class LogFull:
    """The stream of logs has reached its limit and refuses what comes."""

    what: str = "log refuses writes"

    async def begin(self, site: Site) -> None:
        """Set the limit to what is there."""
        js = site.fleet.client.jetstream()
        with contextlib.suppress(nats.errors.Error, TimeoutError):
            info = await js.stream_info(LOG)
            await js.update_stream(info.config.evolve(max_bytes=max(info.state.bytes, 1)))

    async def end(self, site: Site) -> None:
        """Lift it, as soon as there is a server."""

        async def lift() -> None:
            js = site.fleet.client.jetstream()
            with unavailable_unless_answered("The log"):
                await js.update_stream((await js.stream_info(LOG)).config.evolve(max_bytes=-1))

        await until_answered(lift)


@dataclass(frozen=True)
class NatsKilled:
    """nats-server is gone."""

    what: str = "nats-server killed"

    async def begin(self, site: Site) -> None:
        """Kill all servers."""
        await asyncio.gather(*map(crash, site.servers))

    async def end(self, site: Site) -> None:
        """Start them with their stores."""
        await asyncio.gather(*(server.start() for server in site.servers))


@dataclass(frozen=True)
class NatsFrozen:
    """nats-server hears and says nothing, while its connections stay open."""

    what: str = "nats-server frozen"

    async def begin(self, site: Site) -> None:
        """Stop them."""
        for server in site.servers:
            freeze(server.pid)

    async def end(self, site: Site) -> None:
        """Let them continue."""
        for server in site.servers:
            thaw(server.pid)


@dataclass(frozen=True)
class NatsEmptied:
    """nats-server is gone, and comes back with nothing in store."""

    what: str = "nats-server loses its store"

    async def begin(self, site: Site) -> None:
        """Kill it and remove what it stored."""
        await crash(site.server)
        await asyncio.to_thread(shutil.rmtree, site.server.log_path.parent / "jetstream")

    async def end(self, site: Site) -> None:
        """Start it."""
        await site.server.start()


_GARBAGE = (b"", b"\xc1garbage", msgpack.packb({"version": 2, "event": {"type": "unheard_of"}}), msgpack.packb(["x"] * 100_000))
_ODD_INPUT = b'{"goal": "x", "inputs": ["\\ud800", "C:\\\\data\\\\x.csv"]}'


@dataclass(frozen=True)
class Poison:
    """Garbage, other versions, odd names and sizes lie in every stream and bucket."""

    what: str = "poison in every stream"

    async def begin(self, site: Site) -> None:
        """Put it there, as anybody could who may write to NATS."""
        js = site.fleet.client.jetstream()
        for subject in (
            *_POISONED,
            *(f"$KV.{bucket}.{key}" for bucket in _BUCKETS for key in ("nobody", "nobody.poisoned", "a=b/c")),
        ):
            for data in _GARBAGE:
                await js.publish(subject, data)
        await js.publish(subjects.goal_of(LOCAL), _ODD_INPUT)

    async def end(self, site: Site) -> None:
        """Leave it there: nobody tidies up."""


_BUCKETS = (CARDS, LEASES, SESSIONS, MEMBERS, GOAL_RECORDS, OPEN, ENDED)
_POISONED_GROUP = CommId("poisoned")
_POISONED = (
    subjects.goal_of(LOCAL),
    subjects.goal_to(LOCAL, AgentId("nobody")),
    subjects.WORK,
    subjects.log(_POISONED_GROUP),
    subjects.timer(_POISONED_GROUP),
    subjects.result_of(GoalName(LOCAL, GoalId("poisoned"))),
    subjects.dead("unreadable"),
    f"{subjects.ROOT}.outcome.nobody",
    f"$O.{FILES}.M.cG9pc29u",
)


@dataclass(frozen=True)
class VolumeFull:
    """The file system that nats-server stores on has no room left."""

    volume: SmallVolume
    what: str = "JetStream's disk full"

    async def begin(self, site: Site) -> None:
        """Fill it to the last byte."""
        await asyncio.to_thread(self.volume.fill)

    async def end(self, site: Site) -> None:
        """Make room."""
        await asyncio.to_thread(self.volume.free)


@dataclass(frozen=True)
class AllRestarted:
    """Everything is killed at once, as in a power cut."""

    names: Sequence[str]
    what: str = "everything killed"
    _nats: NatsKilled = field(default_factory=NatsKilled)

    async def begin(self, site: Site) -> None:
        """Kill nats-server and every process."""
        await asyncio.gather(self._nats.begin(site), Killed(self.names).begin(site))

    async def end(self, site: Site) -> None:
        """Start everything."""
        await self._nats.end(site)
        await Killed(self.names).end(site)


AGENTS = WORKERS
"""All of them: every agent of the roster is away."""


def _part(name: str) -> str:
    return name.partition("-")[0]


def _together(names: Sequence[str]) -> str:
    return ", ".join(sorted({_part(name) for name in names}))
