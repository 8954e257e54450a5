"""Counting turns and their cost. Runs in the environment of another framework, so it needs nothing but Python."""

from __future__ import annotations

import json
import sys
import time
from importlib.metadata import version
from pathlib import Path

WORDS = "amber birch cedar delta ember fjord grove heron inlet juniper kelp larch maple nettle osprey poplar quartz reed sorrel "


class Clock:
    """Takes the time of every turn. The command line names the package, the number of members and turns, and a folder."""

    def __init__(self) -> None:
        self.package = sys.argv[1]
        self.members, self.turns = int(sys.argv[2]), int(sys.argv[3])
        self.folder = sys.argv[4]
        Path(self.folder).mkdir(exist_ok=True)
        self._cpu: list[float] = []
        self._started = (time.perf_counter(), time.process_time())

    def reply(self) -> str:
        """Count a turn and make 200 bytes to say."""
        self._cpu.append(time.process_time())
        return f"{len(self._cpu)} {WORDS * 2}"[:200]

    def report(self) -> None:
        """Print what was measured."""
        few = max(len(self._cpu) // 10, 1)
        seconds, cpu = time.perf_counter() - self._started[0], time.process_time() - self._started[1]
        late = (self._cpu[-1] - self._cpu[-1 - few]) / few if len(self._cpu) > few else cpu
        figures = {"turns": len(self._cpu), "seconds": seconds, "cpu": cpu, "late_cpu": late}
        print(json.dumps({"version": version(self.package), **figures}))
