"""Run every benchmark in its smallest form: whether it runs, not what it measures. CI does, so that no rename leaves one behind.

python -m benchmarks.smoke [--only NAME ...]
"""

from __future__ import annotations

import argparse
import shlex
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor

SMALLEST: dict[str, str] = {
    "cold_start": "--starts 1",
    "density": "--agents 2 --seconds 1",
    "discovery": "--set office --json",
    "policies": "--games 1 --runs 1 --tasks 50 --turns 20 --rounds 1",
    "prompts": "--walks 20",
    "saturation": "--groups 1 --routers 1 --messages 100 --paced 100",
    "turns": "--members 2 --turns 4 --agents 4:40 --peers",
}
"""Each benchmark that is a command, and what makes it small. Frameworks of others come from PyPI, hence no `--peers`."""

_LONGEST_SECONDS = 120.0
_AT_ONCE = 2

RUN_BY = {"bare_relay": "saturation"}
"""Programs that a benchmark starts."""


def main() -> None:
    """Run them, two at a time, since they mostly wait; exit with 1 if any fails, after all have run."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.smoke", description="Run every benchmark in its smallest form.")
    parser.add_argument("--only", nargs="+", choices=SMALLEST, default=list(SMALLEST), metavar="NAME")
    names, began = parser.parse_args().only, time.monotonic()
    with ThreadPoolExecutor(_AT_ONCE) as threads:
        failed = [name for name, has_run in zip(names, threads.map(_runs, names), strict=True) if not has_run]
    print(f"all in {time.monotonic() - began:.0f} s")
    if failed:
        sys.exit(f"failed: {', '.join(failed)}")


def _runs(name: str) -> bool:
    """Run one, and tell how it went."""
    started = time.monotonic()
    command = [sys.executable, "-m", f"benchmarks.{name}", *shlex.split(SMALLEST[name])]
    with tempfile.TemporaryFile() as said:
        try:
            code: int | str = subprocess.run(command, stdout=said, stderr=said, check=False, timeout=_LONGEST_SECONDS).returncode
        except subprocess.TimeoutExpired:
            code = "none: it was ended"
        print(f"{name}: {'ran' if code == 0 else 'FAILED'} in {time.monotonic() - started:.1f} s", flush=True)
        if code != 0:
            said.seek(0)
            print(f"code {code}\n{said.read().decode(errors='replace')[-4_000:]}", flush=True)
    return code == 0


if __name__ == "__main__":
    main()
