"""Having a process stand still without ending it: to the others it is cut off, while its connections stay open."""

from __future__ import annotations

import os
import signal
import time
from contextlib import suppress
from pathlib import Path

_STOPPED = ("T", "t", "Z", "X")
_LOOK_EVERY_SECONDS = 0.001


def freeze(pid: int) -> None:
    """Stop a process, and return when none of its threads runs any more: the signal is only on its way when `kill` returns."""
    os.kill(pid, signal.SIGSTOP)
    with suppress(FileNotFoundError):  # it has ended meanwhile
        while any(_state(thread) not in _STOPPED for thread in Path(f"/proc/{pid}/task").iterdir()):
            time.sleep(_LOOK_EVERY_SECONDS)


def thaw(pid: int) -> None:
    """Let a frozen process go on."""
    os.kill(pid, signal.SIGCONT)


def _state(thread: Path) -> str:
    try:
        return (thread / "stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):  # it has ended meanwhile
        return "X"
