"""Measure how soon an agent that registers is found.

    python -m benchmarks.freshness [--agents 200] [--rate 10] [--held 1500] [--examples 3]

A registry and one replica of discovery run as processes on a nats-server. With `--held` agents in the index already, agents
register at a steady rate, and each is searched for, one search after the other, until it is found. The time begins when the
registry has answered, and ends when the answer to the first search that finds the agent is there: it holds a whole search.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import timedelta

from nats.aio.client import Client
from rich.table import Table

from benchmarks import machine
from benchmarks.parts import note, open_parts, run
from ioa.adapters.nats.requests.request import NatsRequester
from ioa.protocol import subjects
from ioa.protocol.agents.search import AskIndexStatus, Filters, IndexStatus, Need, Search, SearchResult
from ioa.protocol.cards import AgentCard
from ioa.protocol.ids import LOCAL, AgentId, PoolId
from ioa.protocol.registry import Lease, Register, Renew
from tests.rig.deadline import eventually

_WORDS = """
    ledger harbour turbine orchard violin glacier mosaic beacon pigment saddle compass lantern quarry textile vineyard dialect
    telescope enzyme sonata furnace canal meadow parchment circuit anchor tundra spice bridge fossil clay satellite ferry granite
    loom nectar prism
""".split()
_TIMEOUT = timedelta(seconds=30)
_RENEW_EVERY_SECONDS = 3.0


@dataclass(frozen=True)
class Freshness:
    """Milliseconds from being registered to being found, those that registering took, and CPU-ms an agent by service."""

    agents: int
    held: int
    rate: float
    registering_p50_ms: float
    found_p50_ms: float
    found_p95_ms: float
    found_p99_ms: float
    worst_ms: float
    cpu_ms: dict[str, float]


def card(number: int, examples: int) -> AgentCard:
    """Make a card that no other is like."""
    words = [_WORDS[(number // len(_WORDS) ** place + place * 7) % len(_WORDS)] for place in range(3)]
    first, second, third = words
    name = f"agent-{number}"
    return AgentCard(
        agent_id=AgentId(name),
        name=f"{first} {second} {number}".title(),
        description=f"Knows all about the {first} and the {second}, and advises on every {third}; number {number} of its kind.",
        examples=tuple(f"What must I know of the {words[place % 3]} in case {number} of {place + 1}?" for place in range(examples)),
        pool=PoolId(name),
    )


class Town:
    """Agents that register, keep their leases, and are searched for."""

    def __init__(self, client: Client) -> None:
        self._requester = NatsRequester(client)

    async def register(self, of: AgentCard) -> None:
        """Register an agent."""
        await self._requester.request(
            subjects.agent(of.pool, of.agent_id, subjects.REGISTER), Register(card=of), Lease, timeout=_TIMEOUT
        )

    async def renew(self, agents: Sequence[AgentId]) -> None:
        """Keep leases, spread over the time between two renewals, for ever."""
        while True:
            for agent_id in agents:
                subject = subjects.agent(PoolId(agent_id), agent_id, subjects.RENEW)
                await self._requester.request(subject, Renew(agent_id=agent_id), Lease, timeout=_TIMEOUT)
                await asyncio.sleep(_RENEW_EVERY_SECONDS / len(agents))

    async def hold(self, cards: Sequence[AgentCard]) -> None:
        """Register agents and wait until the index has them all."""
        for start in range(0, len(cards), 50):
            await asyncio.gather(*(self.register(each) for each in cards[start : start + 50]))
        await eventually(self._held, len(cards).__le__, within=timedelta(minutes=10))

    async def _held(self) -> int:
        return (
            await self._requester.request(
                subjects.user(LOCAL, subjects.INDEX_STATUS), AskIndexStatus(), IndexStatus, timeout=_TIMEOUT
            )
        ).cards

    async def appear(self, of: AgentCard) -> tuple[float, float]:
        """Register an agent and search until it is found; return the seconds that each took."""
        need = Need(text=of.description, filters=Filters(pool=of.pool), k=1)
        began = time.perf_counter()
        await self.register(of)
        registered = time.perf_counter()
        while not (
            await self._requester.request(
                subjects.user(LOCAL, subjects.SEARCH), Search(needs=(need,)), SearchResult, timeout=_TIMEOUT
            )
        ).merged:
            pass
        return registered - began, time.perf_counter() - registered


async def benchmark(agents: int, rate: float, held: int, examples: int, *, as_json: bool) -> None:
    """Hold agents, let others appear, and print how soon they were found."""
    async with open_parts(ioa_registry=1, ioa_discovery=1) as parts:
        town = Town(parts.client)
        note(f"registering {held} agents to hold")
        old = [card(number, examples) for number in range(held)]
        await town.hold(old)
        note(f"{agents} agents register, {rate:g} a second")
        counted = {name: machine.family(parts.pids(name)[0]) for name in ("ioa_registry", "ioa_discovery")}
        async with asyncio.TaskGroup() as group:
            keeper = group.create_task(town.renew([each.agent_id for each in old])) if old else None
            with machine.measured(counted) as spent:
                took = await _appear_at(rate, town, [card(held + number, examples) for number in range(agents)])
            if keeper is not None:
                keeper.cancel()
    registering, found = ([seconds * 1_000 for seconds in column] for column in zip(*took, strict=True))
    result = Freshness(
        agents=agents,
        held=held,
        rate=rate,
        registering_p50_ms=machine.percentile(registering, 0.5),
        found_p50_ms=machine.percentile(found, 0.5),
        found_p95_ms=machine.percentile(found, 0.95),
        found_p99_ms=machine.percentile(found, 0.99),
        worst_ms=max(found),
        cpu_ms={name: seconds * 1_000 / agents for name, seconds in spent.by_part.items()},
    )
    if as_json:
        sys.stdout.write(json.dumps({"machine": machine.describe(), **asdict(result)}, indent=1) + "\n")
    else:
        machine.console.print(_table(result))


async def _appear_at(rate: float, town: Town, cards: Sequence[AgentCard]) -> list[tuple[float, float]]:
    """Start each at its time, whether the ones before are found or not."""
    loop = asyncio.get_running_loop()
    began = loop.time()
    appearing: list[asyncio.Task[tuple[float, float]]] = []
    async with asyncio.TaskGroup() as group:
        for number, each in enumerate(cards):
            await asyncio.sleep(began + number / rate - loop.time())
            appearing.append(group.create_task(town.appear(each)))
            if (number + 1) % 50 == 0:
                note(f"{number + 1} of {len(cards)}")
    return [task.result() for task in appearing]


def _table(result: Freshness) -> Table:
    table = Table("agents", "held", "a second", "registering p50 ms", "found p50 ms", "p95", "p99", "worst", "CPU-ms an agent")
    cpu = ", ".join(f"{name.removeprefix('ioa_')} {spent:.0f}" for name, spent in result.cpu_ms.items())
    times = (result.registering_p50_ms, result.found_p50_ms, result.found_p95_ms, result.found_p99_ms, result.worst_ms)
    table.add_row(str(result.agents), str(result.held), f"{result.rate:g}", *(f"{value:.0f}" for value in times), cpu)
    return table


def main() -> None:
    """Read the command line and measure."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--agents", type=int, default=200, help="how many register and are searched for")
    parser.add_argument("--rate", type=float, default=10.0, help="how many register a second")
    parser.add_argument("--held", type=int, default=1_500, help="how many are in the index before")
    parser.add_argument("--examples", type=int, default=3, help="examples on each card")
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    options = parser.parse_args()
    if not options.json:
        machine.console.print(f"From registered to found (aim: p99 50 ms), on {machine.describe()}")
    run(benchmark(options.agents, options.rate, options.held, options.examples, as_json=options.json))


if __name__ == "__main__":
    main()
