"""Have three robots that each see a part of a world sort its cubes, seed by seed, over a real nats-server.

    python -m benchmarks.robots [--seeds 30] [--no-peer]

What it shows is the protocol and the system, with a policy that is written as code: no model decides. Each robot tells what it sees
in plain sentences, without numbers of rounds, and the last one plans from what was said (`examples/robots/sort_hidden.py`). Beside
it AutoGen's group chat goes by the same policy on the same worlds, in one process and without keeping anything. Messages are what
members say to each other, results included, on both sides; the goal is none.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import subprocess
import tempfile
import time
from datetime import timedelta
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks import machine
from benchmarks.parts import note, temporary_folder
from benchmarks.peers import install
from examples.robots.sort_hidden import GOAL, REACH, World, plan, robot, table
from ioa.group.events import RepetitionRefused
from ioa.protocol.goal_order import GoalOrder
from ioa.protocol.ids import AgentId
from ioa.protocol.messages import InformTaskProgress, Thinking
from ioa.telemetry.logs import configure_logs
from ioa_testkit import System

_WITHIN = timedelta(minutes=2)
_ROOT = Path(__file__).parents[1]


def central(seed: int) -> int:
    """How many actions a plan takes that sees all."""
    world, taken = World.reset(seed), 0
    while not world.done:
        world, taken = world.act(plan(dict(world.places))), taken + 1
    return taken


def autogen(seeds: int) -> list[int | None]:
    """Return how many messages AutoGen's group chat took for each seed; None where the cubes were not sorted. Empty without it."""
    with temporary_folder() as folder:
        if failure := install(folder, ["autogen-agentchat", str(_ROOT)]):
            note(f"AutoGen is left out, since it cannot be installed: {failure}")
            return []
        script = _ROOT / "benchmarks" / "peer_scripts" / "autogen_robots.py"
        command = [str(folder / "bin" / "python"), "-W", "ignore", str(script), str(seeds)]
        environment = {**os.environ, "PYTHONPATH": str(_ROOT)}
        ended = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    said = [json.loads(line) for line in ended.stdout.splitlines() if line.startswith("{")]
    return [one["messages"] if one["sorted"] else None for one in said]


async def benchmark(seeds: int, peer: list[int | None]) -> int:
    """Run each seed in one system; return how many were sorted in as few actions as a central plan takes."""
    rows, sorted_ = Table("seed", "sorted", "actions", "central", "messages", "AutoGen's", "refused", "s", "load"), 0
    ours = 0
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
                messages = sum(not isinstance(one.payload, InformTaskProgress | Thinking) for one in goal.messages())
                ours += messages
                theirs = peer[seed] if peer else ""
                told = [seed, goal.succeeded, goal.content, best, messages, theirs, refused, f"{seconds:.1f}", machine.load()]
                rows.add_row(*map(str, told))
    Console(width=150).print(rows, f"{sorted_} of {seeds} sorted in as few actions as a plan takes that sees all (label: oracle)")
    if peer:
        done = [messages for messages in peer if messages is not None]
        print(f"{ours / seeds:.1f} messages an episode; AutoGen sorted {len(done)} of {seeds}, {sum(done) / len(done):.1f} each")
    return sorted_


def main() -> None:
    """Run as many seeds as are asked for; exit with 1 if one fails."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.robots", description="Have robots with partial views sort cubes.")
    parser.add_argument("--seeds", type=int, default=30)
    parser.add_argument("--peer", action=argparse.BooleanOptionalAction, default=True, help="AutoGen's group chat beside it")
    asked = parser.parse_args()
    configure_logs("error", "console")
    peer = autogen(asked.seeds) if asked.peer else []
    raise SystemExit(asyncio.run(benchmark(asked.seeds, peer)) != asked.seeds)


if __name__ == "__main__":
    main()
