"""Have three robots that each see a part of a world sort its cubes, seed by seed, over a real nats-server.

    python -m benchmarks.robots [--seeds 30] [--no-peer]

What it shows is the protocol and the system, with a policy that is written as code: no model decides. Each robot tells what it sees
in plain sentences, without numbers of rounds, and who knows enough plans (`examples/robots/sort_hidden.py`). Beside it AutoGen's
group chats go by the same policy on the same worlds, in one process and without keeping anything: a round robin, and a selector
with a function that picks whom the last message names. Messages are what members say to each other, results included, on all
sides; the goal is none, and neither is a signal that a task has begun.
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


Episodes = list[int | None]
"""How many messages each seed took; None where the cubes were not sorted."""


def autogen(seeds: int) -> dict[str, Episodes]:
    """Return what AutoGen's group chats took, by the kind of chat. Empty without it."""
    with temporary_folder() as folder:
        if failure := install(folder, ["autogen-agentchat", "autogen-ext", str(_ROOT)]):
            note(f"AutoGen is left out, since it cannot be installed: {failure}")
            return {}
        script = _ROOT / "benchmarks" / "peer_scripts" / "autogen_robots.py"
        command = [str(folder / "bin" / "python"), "-W", "ignore", str(script), str(seeds)]
        environment = {**os.environ, "PYTHONPATH": str(_ROOT)}
        ended = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    chats: dict[str, Episodes] = {}
    for one in map(json.loads, filter(lambda line: line.startswith("{"), ended.stdout.splitlines())):
        chats.setdefault(one["chat"], []).append(one["messages"] if one["sorted"] else None)
    return chats


async def benchmark(seeds: int, peers: dict[str, Episodes]) -> int:
    """Run each seed in one system; return how many were sorted in as few actions as a central plan takes."""
    rows = Table("seed", "sorted", "actions", "central", "messages", *(f"AutoGen {chat}" for chat in peers), "refused", "s", "load")
    sorted_, ours, signals = 0, list[int | None](), 0
    with tempfile.TemporaryDirectory() as folder:
        system = System(Path(folder))
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
                seconds = time.perf_counter() - began
                refused = sum(isinstance(one.entry.event, RepetitionRefused) for one in goal.log)
                signs = [isinstance(one.payload, InformTaskProgress | Thinking) for one in goal.messages()]
                signals += sum(signs)
                ours.append(len(signs) - sum(signs) if goal.succeeded else None)
                theirs = [episodes[seed] for episodes in peers.values()]
                told = [seed, goal.succeeded, goal.content, best, ours[-1], *theirs, refused, f"{seconds:.1f}", machine.load()]
                rows.add_row(*map(str, told))
    Console(width=150).print(rows, f"{sorted_} of {seeds} sorted in as few actions as a plan takes that sees all (label: oracle)")
    for name, episodes in {"IoA": ours, **{f"AutoGen {chat}": peers[chat] for chat in peers}}.items():
        done = [messages for messages in episodes if messages is not None]
        print(f"{name}: {len(done)} of {seeds}, {sum(done) / max(len(done), 1):.1f} messages each, {min(done)} to {max(done)}")
    print(f"IoA's members signalled besides {signals / seeds:.1f} times an episode that a task has begun.")
    return sorted_


def main() -> None:
    """Run as many seeds as are asked for; exit with 1 if one fails."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.robots", description="Have robots with partial views sort cubes.")
    parser.add_argument("--seeds", type=int, default=30)
    parser.add_argument("--peer", action=argparse.BooleanOptionalAction, default=True, help="AutoGen's group chat beside it")
    asked = parser.parse_args()
    configure_logs("error", "console")
    peers = autogen(asked.seeds) if asked.peer else {}
    raise SystemExit(asyncio.run(benchmark(asked.seeds, peers)) != asked.seeds)


if __name__ == "__main__":
    main()
