"""Compare what a turn of a group costs a router with what it costs another version's, in one run.

    python -m benchmarks.versions ../other [--rounds 150] [--turns 200]

`../other` is a clone of the other version in which `make .venv/.dev` was run. Both systems stand side by side and take so many
turns in turn, one group of four at a time: a machine that others use is fast and slow by minutes, so that whole runs tell little of
a few hundredths. What counts is the middle of the pairs.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

sys.path.insert(0, str(Path.cwd()))  # this file also runs in the folder of the other version, whose modules are to be found

from rich.table import Table

from benchmarks import machine
from benchmarks.parts import open_parts, run
from benchmarks.silent_groups import open_silent_groups
from benchmarks.turns import parts_of

_READY = "ready"
_WARM_UP_TURNS = 400
_MEMBERS = 4


async def answer() -> None:
    """Open a system, and for each number that is read say what so many turns cost its router, in CPU-ms each."""
    async with open_parts(ioa_router=1) as parts:
        print(_READY, flush=True)
        while line := (await asyncio.to_thread(sys.stdin.readline)).strip():
            async with open_silent_groups(parts.url, groups=1, members=_MEMBERS, turns=int(line)) as silent:
                with machine.measured(parts_of(parts)) as spent:
                    await silent.talk()
            print(spent.by_part["router"] / int(line) * 1000, flush=True)


class _Version:
    """A system of one version, in a process of its own."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def take(self, turns: int) -> float:
        """Take so many turns, and return what each cost."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{turns}\n")
        self._process.stdin.flush()
        return float(self.read())

    def read(self) -> str:
        """Read a line of it."""
        assert self._process.stdout is not None
        line = self._process.stdout.readline().strip()
        if not line:
            sys.exit("One of the systems ended; its own error is above.")
        return line


@contextmanager
def open_version(folder: Path) -> Iterator[_Version]:
    """Open a system from a clone, with the Python of its own."""
    python, pipe = folder / ".venv/bin/python", subprocess.PIPE
    if not python.exists():
        sys.exit(f"{python} is missing: run `make .venv/.dev` in {folder}.")
    with subprocess.Popen([python, __file__, "--answer"], cwd=folder, stdin=pipe, stdout=pipe, text=True) as process:
        version = _Version(process)
        assert version.read() == _READY
        yield version


def compare(other: Path, rounds: int, turns: int) -> None:
    """Have both take turns, each as often first, and show what they cost."""
    with ExitStack() as stack:
        versions = [stack.enter_context(open_version(folder.resolve())) for folder in (other, Path.cwd())]
        for version in versions:
            version.take(_WARM_UP_TURNS)
        costs: list[list[float]] = [[], []]
        for number in range(rounds):
            for which in (0, 1) if number % 2 else (1, 0):
                costs[which].append(versions[which].take(turns))
    table = Table("router, CPU-ms a turn", "median", "lower quartile", "fastest")
    for name, found in zip(("the other", "this"), costs, strict=True):
        table.add_row(name, *(f"{value:.3f}" for value in _figures(found)))
    ratios = (this / before for before, this in zip(*map(_figures, costs), strict=True))
    table.add_row("this to the other", *(f"{ratio:.3f}" for ratio in ratios))
    machine.console.print(table)
    pairs = [this / before for before, this in zip(*costs, strict=True)]
    machine.console.print(f"Pairs, median: {statistics.median(pairs):.3f}; all together: {sum(costs[1]) / sum(costs[0]):.3f}.")


def _figures(found: list[float]) -> tuple[float, float, float]:
    return statistics.median(found), machine.percentile(found, 0.25), min(found)


def main() -> None:
    """Read the command line and compare."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("other", type=Path, nargs="?", help="a clone of the other version")
    parser.add_argument("--rounds", type=int, default=150)
    parser.add_argument("--turns", type=int, default=200, help="how many in each round")
    parser.add_argument("--answer", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.answer:
        run(answer())
    elif options.other is None:
        parser.error("name the folder of the other version")
    else:
        machine.console.print(f"A turn for a router, this version and {options.other}, on {machine.describe()}")
        compare(options.other, options.rounds, options.turns)


if __name__ == "__main__":
    main()
