"""Read texts and payloads of every texture, as large as they are let in, and tell which are the dearest.

    python -m benchmarks.textures --most 1000000

What outsiders send is read on the event loops of services, where all others wait meanwhile. So each reader of the inventory
(`tests/unit/growth/readers.py`) is given each texture, up to so many bytes: none may take longer than its length explains, by CPU
time and beside plain text of the same size. `make test` tries the same with small ones.
"""

from __future__ import annotations

import argparse
import sys
from argparse import RawDescriptionHelpFormatter
from typing import NamedTuple

from tests.unit.growth.measuring import DEAR, MATTERS, seconds_of, slow, times_plain
from tests.unit.growth.sweep import Case, all_cases
from tests.unit.patterns.bounding import TakesForEverError, bounded

_MOST_TOLD = 10
_CPU_SECONDS = 10.0
_FIRST = 32_768
"""Up to which size everything is tried before it is tried larger: what takes minutes is found in a moment there."""


class Took(NamedTuple):
    """How long something took at its largest."""

    seconds: float
    case: Case

    def __str__(self) -> str:
        reader, texture, most = self.case.reader, self.case.texture, self.case.most
        per_megabyte = self.seconds * 1e9 / most
        times = times_plain(self.seconds, most)
        return f"{reader[:34]:<35}{texture[:44]:<46}{most:>9,}{self.seconds * 1e3:>9.1f}{per_megabyte:>9.0f}{times:>8.0f}"


def _took(case: Case) -> float:
    """How long reading takes once, at most so long."""
    try:
        with bounded(_CPU_SECONDS):
            return seconds_of(case.read, case.make, case.most)
    except TakesForEverError:
        return _CPU_SECONDS


def main() -> None:
    """Try everything once; exit with 1 if something is slow."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.textures", description=__doc__, formatter_class=RawDescriptionHelpFormatter
    )
    parser.add_argument("--most", type=int, default=131_072, help="how many bytes, or characters, are read at most")
    parser.add_argument("--readers", default="", help="only readers whose name holds this")
    options = parser.parse_args()
    taken, slow_ones, many = list[Took](), list[str](), 0
    for case in all_cases(options.most):
        if options.readers not in case.reader:
            continue
        many += 1
        found = slow(case.read, case.make, min(case.most, _FIRST))
        if found is None and case.most > _FIRST:
            took = _took(case)
            taken.append(Took(took, case))
            found = slow(case.read, case.make, case.most) if times_plain(took, case.most) > MATTERS else None
        if found is not None:
            slow_ones.append(f"{case.reader} of {case.texture}: {found}")
            print(f"SLOW {slow_ones[-1]}", flush=True)
    dearest = {one.case.reader: one for one in sorted(taken, key=lambda one: one.seconds)}
    print(f"{many} cases\n\n{'reader':<35}{'texture':<46}{'bytes':>9}{'ms':>9}{'ms/MB':>9}{'plain':>8}")
    for one in sorted(dearest.values(), key=lambda one: -one.seconds)[:_MOST_TOLD]:
        print(one)
    if slow_ones:
        sys.exit(
            f"{len(slow_ones)} take longer than they should, by growth and {MATTERS:.0f} times plain text, or {DEAR:.0f} times."
        )


if __name__ == "__main__":
    main()
