"""Have three robots that each see a part of a world sort its cubes, seed by seed, over a real nats-server.

    python -m benchmarks.robots [--seeds 30]

What it shows is the protocol and the system, with a policy that is written as code: no model decides. Each robot tells what it sees
in plain sentences, without numbers of rounds, and the last one plans from what was said (`examples/robots/sort_hidden.py`).
"""

from __future__ import annotations

import argparse
import asyncio
import json
import tempfile
import time
from datetime import timedelta
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks import machine
from examples.robots.sort_hidden import GOAL, REACH, World, plan, robot, table
from ioa.group.events import RepetitionRefused
from ioa.protocol.goal_order import GoalOrder
from ioa.protocol.ids import AgentId
from ioa_testkit import System

_WITHIN = timedelta(minutes=2)


def central(seed: int) -> int:
    """How many actions a plan takes that sees all."""
    world, taken = World.reset(seed), 0
    while not world.done:
        world, taken = world.act(plan(dict(world.places))), taken + 1
    return taken


async def benchmark(seeds: int) -> int:
    """Run each seed in one system; return how many were sorted in as few actions as a central plan takes."""
    rows, sorted_ = Table("seed", "sorted", "actions", "central", "messages", "refused", "s", "load"), 0
    with tempfile.TemporaryDirectory() as folder:
        system = System(Path(folder), on_nats=True)
        system.within = _WITHIN
        world = Path(folder) / "world.json"
        async with system.serve(table, *map(robot, REACH)) as running:
            for seed in range(seeds):
                world.write_text(json.dumps({"seed": seed}), encoding="utf-8")
                began, order = time.perf_counter(), GoalOrder(goal=GOAL, agent=AgentId("alice"), max_turns=200)
                goal = await running.run(order, files=[world])
                best, said = central(seed), f"by {central(seed)} actions"
                is_best = goal.succeeded and said in goal.content
                sorted_ += is_best
                seconds, refused = (
                    time.perf_counter() - began,
                    sum(isinstance(one.entry.event, RepetitionRefused) for one in goal.log),
                )
                told = [seed, goal.succeeded, goal.content, best, len(goal.messages()), refused, f"{seconds:.1f}", machine.load()]
                rows.add_row(*map(str, told))
    Console(width=150).print(rows, f"{sorted_} of {seeds} sorted in as few actions as a plan takes that sees all (label: oracle)")
    return sorted_


def main() -> None:
    """Run as many seeds as are asked for; exit with 1 if one fails."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.robots", description="Have robots with partial views sort cubes.")
    parser.add_argument("--seeds", type=int, default=30)
    seeds = parser.parse_args().seeds
    raise SystemExit(asyncio.run(benchmark(seeds)) != seeds)


if __name__ == "__main__":
    main()
