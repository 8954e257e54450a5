"""Measure whether discovery's event loop ever stands still while many agents register and renew.

    python -m benchmarks.discovery_loop [--agents 1000] [--pools 50]

Discovery is served in this process, whose event loop is watched; nats-server and a registry are processes of their own. The agents
register ten at a time, and renew while their cards are indexed and needs are searched. Whoever asks lives on the watched loop
too, so that this is an upper bound. On a busy machine it finds the machine: a loop that does nothing but turn is stopped as well.
"""

from __future__ import annotations

import argparse
import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator
from datetime import timedelta

from benchmarks import machine
from benchmarks.parts import Parts, open_parts
from ioa.adapters.nats.requests.request import NatsRequester
from ioa.concurrency import beside
from ioa.errors import IoaError
from ioa.protocol import subjects
from ioa.protocol.agents.search import AskIndexStatus, IndexStatus, Need, Search, SearchResult
from ioa.protocol.cards import AgentCard
from ioa.protocol.ids import LOCAL, AgentId, PoolId
from ioa.protocol.registry import Lease, Register, Renew
from ioa.runtime.process import StopSignal
from ioa_discovery.__main__ import serve
from ioa_discovery.settings import DiscoverySettings
from tests.rig.deadline import eventually
from tests.rig.loop_watch import watch_loops

THRESHOLD = timedelta(milliseconds=10)
_PATIENCE = timedelta(seconds=30)
_AT_ONCE = 10


class Crowd:
    """So many agents, and what they ask."""

    def __init__(self, requester: NatsRequester, agents: int, pools: int) -> None:
        self._requester = requester
        self._agents = agents
        self._pools = pools

    async def register(self) -> None:
        """Register everybody."""
        for numbers in self._groups():
            await _together(self._register, numbers)

    async def renew(self) -> None:
        """Renew everybody's lease once."""
        for numbers in self._groups():
            await _together(self._renew, numbers)

    async def search(self) -> None:
        """Ask for somebody."""
        request = Search(needs=(Need(text=f"somebody for thing {time.monotonic()}"),))
        await self._requester.request(subjects.user(LOCAL, subjects.SEARCH), request, SearchResult, timeout=_PATIENCE)

    async def indexed(self) -> int:
        """How many cards discovery holds; -1 if it does not answer yet."""
        try:
            return (
                await self._requester.request(
                    subjects.user(LOCAL, subjects.INDEX_STATUS), AskIndexStatus(), IndexStatus, timeout=_PATIENCE
                )
            ).cards
        except IoaError:
            return -1

    def _groups(self) -> Iterator[range]:
        for start in range(0, self._agents, _AT_ONCE):
            yield range(start, min(start + _AT_ONCE, self._agents))

    async def _register(self, number: int) -> None:
        card = AgentCard(
            agent_id=AgentId(f"agent-{number}"),
            name=f"Agent {number}",
            description=f"Does thing {number} for people.",
            examples=(f"Please do thing {number}.",),
            pool=PoolId(f"pool-{number % self._pools}"),
        )
        subject = subjects.agent(card.pool, card.agent_id, subjects.REGISTER)
        await self._requester.request(subject, Register(card=card), Lease, timeout=_PATIENCE)

    async def _renew(self, number: int) -> None:
        agent_id, pool = AgentId(f"agent-{number}"), PoolId(f"pool-{number % self._pools}")
        await self._requester.request(
            subjects.agent(pool, agent_id, subjects.RENEW), Renew(agent_id=agent_id, pool=pool), Lease, timeout=_PATIENCE
        )


async def _together(act: Callable[[int], Awaitable[None]], numbers: range) -> None:
    await asyncio.gather(*map(act, numbers))


async def measure(parts: Parts, agents: int, pools: int) -> None:
    """Serve discovery here, send the crowd, and print what held the loop."""
    stop = StopSignal()
    crowd = Crowd(NatsRequester(parts.client), agents, pools)
    settings = DiscoverySettings(nats_url=parts.url, vectors_folder=parts.folder / "vectors")
    async with beside(serve(settings, stop)):
        await eventually(crowd.indexed, lambda cards: cards == 0, within=_PATIENCE)
        started = time.perf_counter()
        with watch_loops(THRESHOLD) as watch:
            await crowd.register()
            registered = time.perf_counter() - started
            while await crowd.indexed() < agents:
                await crowd.renew()
                await crowd.search()
        indexed = time.perf_counter() - started
        stop.set()
    machine.console.print(f"{agents} agents registered in {registered:.1f} s, searchable after {indexed:.1f} s")
    machine.console.print(
        f"callbacks that held the loop for more than {THRESHOLD.total_seconds() * 1000:.0f} ms: {len(watch.blocks)}"
    )
    for block in watch.blocks:
        machine.console.print(str(block).splitlines()[0])


async def benchmark(agents: int, pools: int) -> None:
    """Open what discovery needs, and measure."""
    async with open_parts(ioa_registry=1) as parts:
        await measure(parts, agents, pools)


def main() -> None:
    """Read the command line and measure."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--agents", type=int, default=1_000)
    parser.add_argument("--pools", type=int, default=50)
    options = parser.parse_args()
    machine.console.print(f"Discovery's event loop on {machine.describe()}")
    # On asyncio's own loop: another one cannot be watched.
    asyncio.run(benchmark(options.agents, options.pools))


if __name__ == "__main__":
    main()
