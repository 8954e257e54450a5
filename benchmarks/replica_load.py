"""Simulate a burst of tasks for a pool whose replicas renew their leases every three seconds: how evenly is it shared?

    python -m benchmarks.replica_load [--worlds N]

The choice is discovery's own; the replicas, their tasks and the time are simulated. A share is what the busiest replica got, as a
multiple of an equal share.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import statistics
from datetime import timedelta

from rich.console import Console
from rich.table import Table

from ioa.protocol.cards import AgentCard, Load
from ioa.protocol.ids import AgentId, PoolId
from ioa.protocol.registry import CardRecord, Renewal
from ioa.testing.manual_clock import NEW_YEAR, ManualClock
from ioa_discovery.replicas import Replicas
from tests.rig.memory_registry import MemoryCards, MemoryLeases, MemoryRegistryView

RENEW_EVERY = timedelta(seconds=3)
TASKS, REPLICAS, SLOTS = 100, 4, 4
BURSTS = ((3.0, 2.0), (10.0, 0.2), (10.0, 2.0), (30.0, 1.0), (100.0, 1.0))
"""Tasks a second, and seconds a task takes."""
_NAMES = [AgentId(f"worker-{number}") for number in range(REPLICAS)]


class Pool:
    """Replicas that do tasks and tell from time to time how many they have."""

    def __init__(self, chance: random.Random, *, notes: bool) -> None:
        self.clock = ManualClock()
        self._cards, self._leases = MemoryCards(), MemoryLeases(self.clock, timedelta(days=1))
        self._replicas = Replicas(MemoryRegistryView(self._cards, self._leases), self.clock, RENEW_EVERY)
        self._notes = notes
        self._due = {name: NEW_YEAR + RENEW_EVERY * chance.random() for name in _NAMES}
        self.given: dict[AgentId, list[float]] = {name: [] for name in _NAMES}
        """When each task will have ended, in seconds."""

    async def open(self) -> None:
        """Register everybody."""
        for name in _NAMES:
            card = AgentCard(agent_id=name, name="worker", description="Works", pool=PoolId("worker"))
            await self._cards.put(name, CardRecord(card=card, registered_at=NEW_YEAR))
            await self._leases.put(name, Renewal(load=Load(slots=SLOTS)))
            self._replicas.touch(name)

    async def take(self, number: int, after: float, seconds: float) -> None:
        """Let time pass and give a task to whom discovery names."""
        self.clock.advance(timedelta(seconds=after))
        now = (self.clock.now() - NEW_YEAR).total_seconds()
        for name, due in self._due.items():
            if due <= self.clock.now():
                self._due[name] = due + RENEW_EVERY
                load = Load(tasks=sum(end > now for end in self.given[name]), slots=SLOTS)
                await self._leases.put(name, Renewal(load=load))
        named = self._replicas.name(_NAMES[0], purpose=f"goal-{number}", allowed=lambda agent_id, online: online)
        assert named is not None
        if self._notes:
            self._replicas.nominate(named.agent_id, f"goal-{number}")
        waiting = sorted(end for end in self.given[named.agent_id] if end > now)
        begins = now if len(waiting) < SLOTS else waiting[-SLOTS]
        self.given[named.agent_id].append(begins + seconds)


async def busiest_share(seed: int, rate: float, seconds: float, *, notes: bool) -> float:
    """Play one burst."""
    chance = random.Random(seed)
    pool = Pool(chance, notes=notes)
    await pool.open()
    for number in range(TASKS):
        await pool.take(number, chance.expovariate(rate), seconds)
    return max(len(given) for given in pool.given.values()) * REPLICAS / TASKS


async def main() -> None:
    """Simulate, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--worlds", type=int, default=60)
    options = parser.parse_args()
    table = Table("tasks/s", "a task takes", "by leases alone: median", "p95", "with handovers: median", "p95")
    for rate, seconds in BURSTS:
        figures: list[str] = []
        for notes in (False, True):
            shares = sorted([await busiest_share(seed, rate, seconds, notes=notes) for seed in range(options.worlds)])
            figures += [f"{statistics.median(shares):.2f}", f"{shares[int(len(shares) * 0.95)]:.2f}"]
        table.add_row(f"{rate:g}", f"{seconds:g} s", *figures)
    Console(width=110).print(table)


if __name__ == "__main__":
    asyncio.run(main())
