"""What a command in a sandbox may use."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta


@dataclass(frozen=True)
class SandboxLimits:
    """What a command may use. Processor time, `memory_bytes` and the size of a file are counted for each process by itself.

    Attributes:
        memory_in_all_bytes: How much memory all of its processes may hold together; it is looked at twenty times a second. Where
            their container has too little left, whoever holds most is ended before.
        processes: How many processes and threads at once; it is looked at twenty times a second.
        box_bytes: How much it may add to the box.
        files: How many files may be in the box.
        epoll: Whether it may use epoll, without which nothing starts that is made with Node.js, Go or tokio; Python takes another
            way. The kernel counts its watches for a user on the whole machine, so that code which uses them up stops all of
            that user's processes, this one and those in other containers included.
    """

    cpu: timedelta = timedelta(seconds=10)
    wall_clock: timedelta = timedelta(seconds=30)
    memory_bytes: int = 1 << 30
    memory_in_all_bytes: int = 1 << 29
    processes: int = 64
    file_bytes: int = 10_000_000
    box_bytes: int = 100_000_000
    files: int = 1_000
    epoll: bool = False
