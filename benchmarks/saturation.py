"""Measure how many messages a second are routed, beside how many JetStream can store at all for the same client library.

    python -m benchmarks.saturation [--groups 1 16 256] [--routers 1 2] [--messages 8000] [--paced 1000]

Groups of 4 silent members talk as fast as the floor allows, so that as many messages are on their way as there are groups. Two
limits are measured in the same run. The raw one: as many publishes to a stream, of the size of a log entry, as many at a time, each
acknowledged. And a bare relay (`bare_relay`) in the router's place, which stores, pushes and answers as a router does and decides
nothing.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import time
from collections.abc import Sequence
from itertools import product

from nats.aio.client import Client
from rich.table import Table

from benchmarks import machine
from benchmarks.parts import Parts, note, open_parts, run
from benchmarks.silent_groups import open_silent_groups
from ioa.adapters.nats.streams.topology import LOG
from ioa.adapters.nats.wire.connection import NatsSettings, open_connection
from ioa.protocol import subjects
from ioa.protocol.ids import CommId

_ROUTER = "ioa_router"
_TITLES = {_ROUTER: "router", "benchmarks.bare_relay": "bare relay"}
_MEMBERS = 4
_PACED_GROUPS = 16
_MIN_TURNS = 8


async def measure_raw(parts: Parts, messages: int, max_concurrent: int) -> float:
    """Return how many publishes a second JetStream acknowledges."""
    async with open_connection(NatsSettings(parts.url, "raw")) as client:
        js = client.jetstream()
        size = await _entry_bytes(client)
        data, numbers = b"x" * size, iter(range(messages))

        async def publish(lane: int) -> None:
            subject = subjects.log(CommId(f"raw-{lane}"))
            for _ in numbers:
                await js.publish(subject, data, stream=LOG)

        started = time.perf_counter()
        async with asyncio.TaskGroup() as group:
            for lane in range(max_concurrent):
                group.create_task(publish(lane))
        return messages / (time.perf_counter() - started)


async def _entry_bytes(client: Client) -> int:
    """How large log entries are on average."""
    state = (await client.jetstream().stream_info(LOG)).state
    return state.bytes // max(state.messages, 1)


async def measure_routed(
    parts: Parts, module: str, groups: int, messages: int, raw: float | None, per_second: float | None = None
) -> list[str]:
    """Let groups talk and return a row of figures."""
    turns = max(messages // groups, _MIN_TURNS)
    routers = parts.pids(module)
    async with open_silent_groups(parts.url, groups=groups, members=_MEMBERS, turns=turns) as silent:
        started = time.perf_counter()
        with machine.measured({"router": routers, "server": [parts.server_pid], "clients": [os.getpid()]}) as spent:
            await silent.talk(per_second=per_second)
        seconds = time.perf_counter() - started
    rate = groups * turns / seconds
    cpu = [f"{value / (groups * turns) * 1000:.3f}" for value in spent.by_part.values()]
    hops = [f"{machine.percentile(silent.hops, share) * 1000:.2f}" for share in (0.5, 0.99)]
    beside = [f"{raw:,.0f}", f"{rate / raw:.2f}"] if raw else ["", ""]
    who = f"{len(routers)} {_TITLES[module]}"
    return [who, f"{groups}{' paced' if per_second else ''}", f"{rate:,.0f}", *beside, *cpu, *hops, machine.load()]


async def benchmark(groups: Sequence[int], routers: Sequence[int], messages: int, paced: float) -> None:
    """Measure every combination, and routers once at a given rate."""
    table = Table("", "groups", "routed/s", "raw/s", "ratio", "router", "server", "clients", "p50", "p99", "load")
    for replicas, module in product(routers, _TITLES):
        async with open_parts(**{module: replicas}) as parts:
            await measure_routed(parts, module, _PACED_GROUPS, 500, None)
            for count in groups:
                note(f"{replicas} {_TITLES[module]}, {count} groups")
                raw = await measure_raw(parts, messages, count)
                table.add_row(*await measure_routed(parts, module, count, messages, raw))
            if module == _ROUTER:
                note(f"{replicas} {_TITLES[module]}, {paced:g} messages/s")
                table.add_row(*await measure_routed(parts, module, _PACED_GROUPS, int(paced) * 5, None, paced))
    machine.console.print(table)
    machine.console.print(
        "router, server, clients: CPU-ms per message. p50, p99: ms from saying something to the next one's seeing it."
    )


def main() -> None:
    """Read the command line and measure."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--groups", type=int, nargs="+", default=[1, 16, 256])
    parser.add_argument("--routers", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--messages", type=int, default=8_000)
    parser.add_argument("--paced", type=float, default=1_000.0, metavar="PER_SECOND")
    options = parser.parse_args()
    machine.console.print(f"Saturation on {machine.describe()}")
    run(benchmark(options.groups, options.routers, options.messages, options.paced))


if __name__ == "__main__":
    main()
