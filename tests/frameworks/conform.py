"""Put a real framework to the ten cases, in an environment that has it: `python -m tests.frameworks.conform langgraph`.

It prints a line for each case, and ends with status 1 if a promise is not kept. There is no pytest in such an environment.
"""

from __future__ import annotations

import asyncio
import importlib
import sys
import tempfile
import time
from pathlib import Path

from ioa.testing.conformance import CASES, ForeignAgent

LEFT_OUT = {("crewai", "bad-output"): "it refuses an empty answer itself, by an error that is no TaskError"}


def main(name: str) -> int:
    """Try all cases, each in a loop of its own, as a test does."""
    began = time.perf_counter()
    row = importlib.import_module(f"tests.frameworks.real.{name}_row")
    print(f"{name}: imported in {time.perf_counter() - began:.1f} s")
    failed = 0
    for case in CASES:
        if why := LEFT_OUT.get((name, case.name)):
            print(f"{name}: {case} left out: {why}")
            continue
        with tempfile.TemporaryDirectory() as folder:
            try:
                asyncio.run(case.check(row.adopted(ForeignAgent(Path(folder))), Path(folder)))
            except BaseException as error:  # noqa: BLE001 - of a framework anything may come
                failed += 1
                print(f"{name}: {case} FAILED: {type(error).__name__}: {str(error)[:500]}")
            else:
                print(f"{name}: {case} kept")
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
