"""Random faults for some time while twenty goals run concurrently, and a check of the result.

Every few seconds one fault begins, whatever else is broken: processes are killed, at a fault point or anywhere, frozen, or lose
their memory or their disk; nats-server dies; clocks step; the log rejects writes; goals are cancelled and published again. The seed
determines the faults and their times. Only killed processes are started again. Each concluded goal must have its known answer.
Faults that last longer than a lease are in `outages`.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import statistics
import time
from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

import nats.errors

from ioa.adapters.nats.streams.topology import RESULTS
from ioa.concurrency import beside
from ioa.errors import NotFoundError
from ioa.group.events import Said
from ioa.telemetry import fault_points
from tests.rig.faults import ClockOff, Fault, Frozen, Killed, LogFull, MemoryLocked, Site, Wiped, suffered
from tests.rig.fleet import CONTROL_PLANE, GROUPS, REGISTRIES, ROSTER, ROUTERS, WORKERS, Fleet, open_fleet
from tests.rig.log_checker import Evidence, check, recovery_after
from tests.rig.nats_site import NatsSite, open_nats_site

_POINTS = {
    "router": ("router.before_append", "router.after_append", "router.between_pushes", "router.before_answer"),
    "groups": ("groups.goal_recorded", "groups.subgroup_recorded"),
    "worker": tuple(name for name in fault_points.POINTS if name.startswith("agent.")),
}
_GOALS_AT_ONCE = 20
_PUBLISH_EVERY, _LOOK_EVERY = 0.5, 0.2
_STEP = timedelta(seconds=90)
_DRAIN = timedelta(seconds=150)


@dataclass
class Chaos:
    """A run: its dice, its system, and what was done to it and when it was over."""

    chance: random.Random
    site: Site
    crash_nats: Callable[[random.Random], Awaitable[None]] | None
    until: float
    hand: asyncio.Lock = field(default_factory=asyncio.Lock)
    faults: list[tuple[str, datetime]] = field(default_factory=list)

    @property
    def fleet(self) -> Fleet:
        """The processes."""
        return self.site.fleet

    async def load(self) -> None:
        """Keep twenty goals open."""
        chance = random.Random(self.chance.random())  # its own, so that the faults follow from the seed alone
        while time.monotonic() < self.until:
            missing = _GOALS_AT_ONCE - await self._open_goals()
            if missing > 0:
                await self.fleet.publish_mix(missing, chance.randrange(10**6))
            await asyncio.sleep(_PUBLISH_EVERY)

    async def revive(self) -> None:
        """Start again whatever has died at a fault point."""
        while True:
            async with self.hand:
                for name in (*CONTROL_PLANE, *WORKERS):
                    if self.fleet.has_died(name):
                        await self.fleet.start(name)
                        self._over(f"{_part(name)} dies at a fault point")
            await asyncio.sleep(_LOOK_EVERY)

    async def torment(self) -> None:
        """Do one thing after another."""
        deeds = {
            self._kill_router: 4,
            self._kill_other: 3,
            self._kill_worker: 3,
            self._wipe_worker: 1,
            self._freeze: 2,
            **({self._crash_nats: 2} if self.crash_nats else {}),
            self._lock_memory: 1,
            self._refuse_writes: 1,
            self._step_clock: 1,
            self._cancel: 2,
            self._publish_again: 2,
        }
        while time.monotonic() < self.until:
            await asyncio.sleep(self.chance.uniform(0.5, 4.0))
            [deed] = self.chance.choices(list(deeds), list(deeds.values()))
            await deed()

    async def _kill_router(self) -> None:
        await self._kill(self.chance.choice(ROUTERS))

    async def _kill_other(self) -> None:
        await self._kill(self.chance.choice((*GROUPS, *REGISTRIES)))

    async def _kill_worker(self) -> None:
        await self._kill(self.chance.choice(WORKERS))

    async def _kill(self, name: str) -> None:
        """Kill a process and start it again; every second time so that it dies once more, at a fault point."""
        point = None
        if _part(name) in _POINTS and self.chance.random() < 0.5:
            point = f"{self.chance.choice(_POINTS[_part(name)])}:{self.chance.randint(1, 20)}"
        async with self.hand:
            await Killed([name]).begin(self.site)
            await self.fleet.start(name, fault_point=point)
        self._over(Killed([name]).what)

    async def _wipe_worker(self) -> None:
        await self._suffer(Wiped([self.chance.choice(WORKERS)]), 0)

    async def _freeze(self) -> None:
        await self._suffer(Frozen([self.chance.choice((*CONTROL_PLANE, *WORKERS))]), self.chance.uniform(1, 8))

    async def _lock_memory(self) -> None:
        await self._suffer(MemoryLocked(self.chance.choice(WORKERS)), self.chance.uniform(1, 4))

    async def _refuse_writes(self) -> None:
        await self._suffer(LogFull(), self.chance.uniform(1, 3))

    async def _step_clock(self) -> None:
        name, ahead = self.chance.choice((*CONTROL_PLANE, *WORKERS)), self.chance.choice((-_STEP, _STEP))
        await self._suffer(ClockOff(name, ahead), self.chance.uniform(1, 8))

    async def _suffer(self, fault: Fault, seconds: float) -> None:
        async with self.hand, suffered(fault, self.site):
            await asyncio.sleep(seconds)
        self._over(fault.what)

    async def _crash_nats(self) -> None:
        assert self.crash_nats is not None
        await self.crash_nats(self.chance)
        self._over("nats-server killed")

    async def _cancel(self) -> None:
        if self.fleet.goals:
            with contextlib.suppress(NotFoundError):  # it may still wait to be taken in
                await self.fleet.cancel(self.chance.choice(self.fleet.goals[-_GOALS_AT_ONCE:]))
            self._over("goal is cancelled")

    async def _publish_again(self) -> None:
        if self.fleet.goals:
            await self.fleet.publish_again(self.chance.choice(self.fleet.goals))
            self._over("goal is published again")

    async def _open_goals(self) -> int:
        try:
            return len(self.fleet.goals) - (await self.fleet.client.jetstream().stream_info(RESULTS)).state.messages
        except (nats.errors.Error, TimeoutError):
            return _GOALS_AT_ONCE

    def _over(self, fault: str) -> None:
        self.faults.append((fault, datetime.now(UTC)))


def _part(name: str) -> str:
    return name.partition("-")[0]


async def find_faults(folder: Path, seconds: float, seed: int, nodes: int, tenants: int) -> list[str]:
    """Break the system of each tenant, wait until it is at rest, and print figures; return the errors."""
    async with (
        open_nats_site(folder / "nats", nodes=nodes, tenants=tenants, agents=len(ROSTER)) as site,
        AsyncExitStack() as stack,
    ):
        env = {"IOA_REPLICAS": str(nodes), "IOA_LOG_LEVEL": "error"}
        runs = []
        for number, credentials in enumerate(site.credentials):
            fleet = open_fleet(site.url, folder / f"fleet-{number}", env, credentials=credentials)
            runs.append(_run(await stack.enter_async_context(fleet), site, number, seconds, seed))
        return [wrong for found in await asyncio.gather(*runs) for wrong in found]


async def _run(fleet: Fleet, nats: NatsSite, number: int, seconds: float, seed: int) -> list[str]:
    """Break the system of a tenant; the run of the first tenant also crashes nats-servers."""
    await fleet.start(*CONTROL_PLANE, *WORKERS)
    await fleet.until_online()
    started = time.monotonic()
    servers, crash_nats = ((), None) if number else (nats.servers, nats.crash_one)
    chaos = Chaos(random.Random(seed + number), Site(fleet, servers), crash_nats, started + seconds)
    async with beside(chaos.revive(), fleet.sit(random.Random(seed))):
        await asyncio.gather(chaos.load(), chaos.torment())
        tormented = time.monotonic() - started
        await fleet.rest(within=_DRAIN)
        rested = time.monotonic() - started - tormented
    evidence = await fleet.evidence()
    print(f"{tormented:.0f} s of faults; at rest {rested:.1f} s after the last one\n")
    wrong = await asyncio.to_thread(check, evidence)
    _print_faults(chaos.faults, evidence)
    _print_goals(evidence)
    if wrong:
        print(fleet.logs())
    return wrong


def _print_faults(faults: Sequence[tuple[str, datetime]], evidence: Evidence) -> None:
    """How often each was done, and how long after it every open group had moved on."""
    waits: dict[str, list[float]] = defaultdict(list)
    for fault, at in faults:
        waits[fault].append(recovery_after(evidence.logs, at).total_seconds())
    print("| fault | times | recovered after, median | worst |\n|---|---|---|---|")
    for fault, times in sorted(waits.items()):
        print(f"| {fault} | {len(times)} | {statistics.median(times):.1f} s | {max(times):.1f} s |")


def _print_goals(evidence: Evidence) -> None:
    reasons = Counter(str(result.reason) for result in evidence.results)
    listed = ", ".join(f"{count} {reason}" for reason, count in reasons.most_common())
    entries = sum(len(log) for log in evidence.logs.values())
    print(f"\n{len(evidence.goals)} goals: {listed}. {len(evidence.logs)} groups, {entries} entries,", end=" ")
    runs = sum(not run.returned for run in evidence.runs or ())
    said = [one.entry.event.message for log in evidence.logs.values() for one in log if isinstance(one.entry.event, Said)]
    by_functions = sum(message.header.decided_by is not None and message.header.decided_by.kind == "function" for message in said)
    print(f"{len(evidence.accepted)} messages known to be accepted, {runs} runs of tasks.", end=" ")
    print(f"{by_functions} of {len(said)} messages were decided by agents' own functions.")
