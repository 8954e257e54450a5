"""What all processes of a command hold in memory together: the kernel bounds each by itself, and ends others where all is full.

A process counts for the command whose group it is in, which no code leaves. Its pages count as the kernel shares them out: those
that a fork has in common with its parent once for all of them, and those of a file, which can be read again, not at all.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
_CGROUPS = Path("/sys/fs/cgroup")
_KEPT_FREE = 5
"""Which part of its memory a container keeps free: of 512 MiB commands fill about a tenth before they are looked at again."""


class MemoryRoom:
    """Tells commands that take too much memory. Its members may be used from any thread.

    Args:
        container: The folder in which the kernel tells of the memory of this process's container; if there is none, each command
            is looked at by itself.
    """

    def __init__(self, container: Path) -> None:
        self._container = container
        self._groups: set[int] = set()

    @contextmanager
    def shared_by(self, group: int) -> Iterator[None]:
        """Look at a process group among the others in the block."""
        self._groups.add(group)
        try:
            yield
        finally:
            self._groups.discard(group)

    def overdrawn(self, group: int, most_bytes: int) -> str:
        """Say that a group holds too much, as the predicate of a sentence: more than it may, or most of what leaves no room.

        Where that is not enough to make room it is the agent that has taken it, or somebody else in the container.
        """
        if held(group, most_bytes) > most_bytes:
            return f"took more than {most_bytes} bytes of memory in all"
        if (lacking := self._lacking()) and _has_most(group, {one: held(one) for one in self._groups.copy()}, lacking):
            return "took most of the memory that its agent shares with what it runs, of which too little was left"
        return ""

    def _lacking(self) -> int:
        """Return how much less is left of the container's memory than it keeps free; what it keeps of files counts as left."""
        with suppress(OSError, ValueError):  # there is no container, or it has no limit
            limit, taken = (int((self._container / name).read_text()) for name in ("memory.max", "memory.current"))
            most = limit - limit // _KEPT_FREE
            if taken > most:
                facts = dict(line.split() for line in (self._container / "memory.stat").read_text().splitlines())
                taken -= sum(int(facts[name]) for name in ("active_file", "inactive_file", "slab_reclaimable"))
            return max(0, taken - most)
        return 0


def _has_most(group: int, sizes: Mapping[int, int], at_least: int) -> bool:
    return at_least <= sizes.get(group, 0) == max(sizes.values())


def held(group: int, enough: int = 0) -> int:
    """Count the bytes that a group's processes hold. Up to `enough` it may be too many: as often as pages are held.

    What is counted fast is counted first, since there may be hundreds of processes, and twenty looks a second.
    """
    members = [process for process in processes() if _group_of(process) == group]
    resident = sum(map(_resident, members))
    return resident if resident <= enough else sum(map(_share, members))


def processes() -> list[str]:
    """List the ids of all processes of this machine."""
    return [name for name in os.listdir("/proc") if name.isdigit()] if sys.platform == "linux" else []  # noqa: PTH208 - hundreds


def _container_here() -> Path:
    """Return the folder in which the kernel tells of this process's container, or service (cgroup v2); it may be missing."""
    with suppress(OSError):
        for line in Path("/proc/self/cgroup").read_text().splitlines():
            if line.startswith("0::"):
                return _CGROUPS / line.removeprefix("0::/")
    return _CGROUPS


def _group_of(process: str) -> int:
    with suppress(OSError):  # it has ended meanwhile
        return os.getpgid(int(process))
    return 0


def _resident(process: str) -> int:
    with suppress(OSError):
        return int(Path(f"/proc/{process}/statm").read_text().split()[1]) * _PAGE_BYTES
    return 0


def _share(process: str) -> int:
    """Count what a process holds, a page that several hold by its part; all that it holds, if it does not let this be seen."""
    try:
        lines = Path(f"/proc/{process}/smaps_rollup").read_text().splitlines()[1:]
    except PermissionError:
        return _resident(process)
    except OSError:
        return 0
    kilobytes = {name: int(number) for name, number, *_ in (line.split() for line in lines)}
    return (kilobytes.get("Pss:", 0) - kilobytes.get("Pss_File:", 0)) * 1024


ROOM_OF_COMMANDS = MemoryRoom(_container_here())
"""That of all commands that this process runs."""
