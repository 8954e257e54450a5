"""What all processes of a command hold in memory together: the kernel bounds each by itself, and ends others where all is full.

The pages of a process count as the kernel shares them out: those that a fork has in common with its parent once for all of them,
and those of a file, which can be read again, not at all.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Lock

from ioa.sandbox.processes import members

_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
_CGROUPS = Path("/sys/fs/cgroup")
_KEPT_FREE = 5
"""Which part of its memory a container keeps free: of 512 MiB commands fill about a tenth before they are looked at again."""
_OF_FILES = ("active_file", "inactive_file", "slab_reclaimable")
OPEN_FILES = 256
"""How many files each process of a command may have open."""


class MemoryRoom:
    """Tells commands that take too much memory. Its members may be used from any thread.

    Not all that a command takes is in pages of its processes: what waits in sockets is the kernel's, what lies on a disk in memory
    nobody's. Of that no kernel tells whose it is, so what has come since no command ran counts for those that run.

    Args:
        container: The folder in which the kernel tells of the memory of this process's container; if there is none, each command
            is looked at by itself.
    """

    def __init__(self, container: Path) -> None:
        self._container = container
        self._groups: set[int] = set()
        self._entrance = Lock()
        self._unseen_before = 0
        self._making_room: dict[int, int] = {}

    @contextmanager
    def shared_by(self, start: Callable[[], subprocess.Popen[bytes]]) -> Iterator[subprocess.Popen[bytes]]:
        """Start a process, and look at its group among the others in the block."""
        with self._entrance:  # what the first of them takes at once is not there before
            unseen = self._unseen()
            self._unseen_before = min(unseen, self._unseen_before) if self._groups else unseen
            process = start()
            self._groups.add(process.pid)
        try:
            yield process
        finally:
            self._groups.discard(process.pid)
            self._making_room.pop(process.pid, None)

    def overdrawn(self, group: int, holding: Sequence[str], most_bytes: int) -> str:
        """Say that a group holds too much, as the predicate of a sentence: more than it may, or most of what leaves no room.

        `holding` are its processes. Where all groups together do not hold what is lacking it is their agent that has taken it, or
        somebody else in the container. One alone need not hold it: what comes between two looks may be any number of times that.
        """
        if held(holding, most_bytes) > most_bytes:
            return f"took more than {most_bytes} bytes of memory in all"
        if self._has_to_make_room(group):
            return "took most of the memory that its agent shares with what it runs, of which too little was left"
        return ""

    def _has_to_make_room(self, group: int) -> bool:
        """Whether a group is the largest of those that can make room, while those that are being ended do not make enough."""
        making = self._making_room.copy()  # before it is asked what is lacking: what an ended one has left is counted there
        if lacking := self._lacking():
            sizes = self._sizes()
            making |= self._making_room
            rest = {one: size for one, size in sizes.items() if one not in making}
            if 0 < lacking - sum(making.values()) <= sum(rest.values()) and rest.get(group) == max(rest.values()):
                self._making_room[group] = rest[group]
        return group in self._making_room

    def _lacking(self) -> int:
        """Return how much less is left of the container's memory than it keeps free; what it keeps of files counts as left."""
        with suppress(OSError, ValueError):  # there is no container, or it has no limit
            limit, taken = (self._number(name) for name in ("memory.max", "memory.current"))
            most = limit - limit // _KEPT_FREE
            return max(0, taken - self._part(*_OF_FILES) - most) if taken > most else 0
        return 0

    def _sizes(self) -> dict[int, int]:
        """Return what each group holds, and of what none is seen to hold a part by its open files, which a socket is one of."""
        unseen = max(0, self._unseen() - self._unseen_before)
        holding = {group: members(group) for group in self._groups.copy()}
        files = {group: sum(map(_open_files, those)) for group, those in holding.items()}
        total = sum(files.values()) or 1
        return {group: held(those) + unseen * files[group] // total for group, those in holding.items()}

    def _unseen(self) -> int:
        """Count what the container holds that is in no process's own pages, but for files, which can be read again."""
        with suppress(OSError, ValueError):
            return self._number("memory.current") - self._part(*_OF_FILES, "anon")
        return 0

    def _number(self, name: str) -> int:
        return int((self._container / name).read_text())

    def _part(self, *names: str) -> int:
        facts = dict(line.split() for line in (self._container / "memory.stat").read_text().splitlines())
        return sum(int(facts[name]) for name in names)


def held(holding: Sequence[str], enough: int = 0) -> int:
    """Count the bytes that processes hold. Up to `enough` it may be too many: as often as pages are held.

    What is counted fast is counted first, since there may be hundreds of processes, and twenty looks a second.
    """
    resident = sum(map(_resident, holding))
    return resident if resident <= enough else sum(map(_share, holding))


def _container_here() -> Path:
    """Return the folder in which the kernel tells of this process's container, or service (cgroup v2); it may be missing."""
    with suppress(OSError):
        for line in Path("/proc/self/cgroup").read_text().splitlines():
            if line.startswith("0::"):
                return _CGROUPS / line.removeprefix("0::/")
    return _CGROUPS


def _resident(process: str) -> int:
    with suppress(OSError):
        return int(Path(f"/proc/{process}/statm").read_text().split()[1]) * _PAGE_BYTES
    return 0


def _open_files(process: str) -> int:
    """Count the files that a process has open; as many as it may have, if it does not let this be seen."""
    try:
        return len(os.listdir(f"/proc/{process}/fd"))  # noqa: PTH208 - hundreds
    except PermissionError:
        return OPEN_FILES
    except OSError:
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
