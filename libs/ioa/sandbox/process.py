"""Running a command in a sandbox, within limits, until it ends, breaks one, or is not wanted any more."""

from __future__ import annotations

import contextlib
import marshal
import os
import platform
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path, PurePosixPath
from typing import IO, Any

from ioa.errors import InvalidInputError
from ioa.sandbox import landlock, seccomp
from ioa.sandbox.levels import Level

NOBODY = 65534
"""The user that root becomes."""
_LAUNCHER = Path(__file__).with_name("launcher.py")
_SYSTEM = ("/usr", "/bin", "/lib", "/lib32", "/lib64", "/libx32", "/etc/ld.so.cache")
_DEVICES = ("/dev/null", "/dev/zero", "/dev/urandom")
_OPEN_FILES = 256
_TICK_SECONDS = 0.05
_OWN_PROCESSES = 4
"""What bubblewrap and the shell in it take of the processes that are allowed."""
_BLOCK_BYTES = 512
_ARCHIVE_BYTES_PER_FILE = 4096
_IN_AND_OUT = """\
tar -xf - && {
    (ulimit -f "$0"; exec "$@") </dev/null >&2
    status=$?
    tar -cf - . 2>/dev/null
    exit $status
}"""
"""What runs in bubblewrap: the box comes in as an archive and goes out as one, since its disk ends with its namespaces."""
_DEEPEST = 32
"""How many folders may lie in each other: removing thousands would be too much for whoever has to."""


@dataclass(frozen=True)
class Limits:
    """What a command may use. Processor time, memory and the size of a file are counted for each process by itself.

    Attributes:
        processes: How many processes and threads at once; all commands of one user that run at the same time share what is free.
        box_bytes: How much it may add to the box.
        files: How many files may be in the box.
    """

    cpu: timedelta = timedelta(seconds=10)
    wall_clock: timedelta = timedelta(seconds=30)
    memory_bytes: int = 1 << 30
    processes: int = 64
    file_bytes: int = 10_000_000
    box_bytes: int = 100_000_000
    files: int = 1_000


@dataclass(frozen=True)
class Ending:
    """How a command ended: `reason` is the predicate of a sentence, such as "did not end within 30 seconds"; empty for success."""

    reason: str = ""


def run(
    command: Sequence[str],
    box: Path,
    limits: Limits,
    level: Level,
    network: Sequence[int] = (),
    *,
    output: Path,
    readable: Sequence[Path] = (),
    environment: Mapping[str, str] | None = None,
    cancelled: Callable[[], bool] = lambda: False,
    kernel: landlock.Abi | None = None,
) -> Ending:
    """Run a command that can change nothing but its box; when this returns, no process of it is left.

    It blocks. On `landlock` and `bwrap` the command reads the system's programs and libraries, this Python, and `readable`.

    Args:
        command: The program and its arguments.
        box: The folder it works in. On `bwrap` only files and folders come out of it, no links.
        limits: What it may use.
        level: How it is confined; `level_here` tells what holds on this machine.
        network: Ports to which it may open TCP connections at any address; there is no name service.
        output: The file that gets what it prints, outside of the box.
        readable: What else it may read.
        environment: All of its environment; nothing is passed on by itself.
        cancelled: Asked twenty times a second; once it says so, the command is killed.
        kernel: What Landlock is asked for; all that this kernel has if nothing is said.

    Raises:
        InvalidInputError: Ports are wanted, and this kernel cannot confine connections to them.
    """
    kernel = kernel or landlock.this_kernel()
    if network and level is not Level.NONE and not kernel.confines_tcp:
        raise InvalidInputError(
            "This kernel cannot confine connections to ports.", hint="Landlock does from Linux 6.7 on; run it without a network."
        )
    box = box.resolve()
    with ExitStack() as stack:
        confined = _Confined(box, limits, level, tuple(network), _readable(readable), kernel)
        plan, prefix = confined.plan(), list[str]()
        printed = stack.enter_context(output.open("wb"))
        stdin: IO[bytes] | None = None
        stdout: IO[bytes] = printed
        passed: tuple[int, ...] = ()
        if level is Level.BWRAP:
            stdin, stdout = stack.enter_context(tempfile.TemporaryFile()), stack.enter_context(tempfile.TemporaryFile())
            size = _pack(box, stdin)
            filter_read, filter_write = os.pipe()
            stack.callback(os.close, filter_read)
            os.write(filter_write, confined.filter())  # a few kilobytes, which a pipe holds
            os.close(filter_write)
            passed = (filter_read,)
            prefix = confined.bubblewrap(filter_read, size)
            plan["limits"]["RLIMIT_FSIZE"] = 2 * (size + limits.box_bytes) + limits.files * _ARCHIVE_BYTES_PER_FILE
        elif level is Level.LANDLOCK and os.geteuid() == 0:
            _give(box, NOBODY)
        before = _contents(box, limits)[1]
        process = subprocess.Popen(
            [sys.executable, "-I", "-S", str(_LAUNCHER), marshal.dumps(plan).hex(), *_found([*prefix, *command])],
            env=dict(environment or {}), stdin=stdin or subprocess.DEVNULL, stdout=stdout, stderr=printed,
            start_new_session=True, pass_fds=passed,
        )  # fmt: skip
        reason = _watch(process, limits, cancelled, lambda: _overfull(box, before, limits))
        if stdin is not None:
            return Ending(_unpack(stdout, box, limits) or reason)
        if _overfull(box, before, limits):
            _empty(box)
        _reopen(box)
        return Ending(reason)


@dataclass(frozen=True)
class _Confined:
    """What a command is confined to, and how each level is told so."""

    box: Path
    limits: Limits
    level: Level
    network: tuple[int, ...]
    readable: tuple[str, ...]
    kernel: landlock.Abi

    def plan(self) -> dict[str, Any]:
        """Make the launcher's plan."""
        confined = self.level is not Level.NONE
        root = os.geteuid() == 0
        user = NOBODY if confined and root else os.geteuid()
        bounds = {
            "RLIMIT_CPU": max(1, int(self.limits.cpu.total_seconds())),
            "RLIMIT_AS": self.limits.memory_bytes,
            "RLIMIT_FSIZE": self.limits.file_bytes,
            "RLIMIT_CORE": 0,
            "RLIMIT_NOFILE": _OPEN_FILES,
        }
        if sys.platform == "linux":
            own = _OWN_PROCESSES if self.level is Level.BWRAP else 0
            bounds["RLIMIT_NPROC"] = _threads_of(user) + self.limits.processes + own
        return {
            "box": "/" if self.level is Level.BWRAP else str(self.box),
            "limits": bounds,
            "user": NOBODY if confined and root else None,
            "search": self.level is Level.LANDLOCK and root and not all(map(_is_open_to_all, (*self.readable, str(self.box)))),
            "parent": os.getpid(),
            "unprivileged": confined,
            "landlock": self._landlock(),
            "filter": self.filter().hex() if self.level is Level.LANDLOCK else "",
            "self": seccomp.SELF,
        }

    def _landlock(self) -> dict[str, Any] | None:
        files = self.level is Level.LANDLOCK
        if not files and not (self.level is Level.BWRAP and self.network):
            return None
        paths = [(path, landlock.READ) for path in self.readable] if files else []
        paths += [(path, landlock.DEVICE) for path in _DEVICES] if files else []
        return {
            "ruleset": self.kernel.ruleset(files=files).hex(),
            "paths": [*paths, (str(self.box), self.kernel.box)] if files else [],
            "of_files": landlock.OF_FILES,
            "ports": self.network,
            "connect": landlock.CONNECT_TCP,
        }

    def filter(self) -> bytes:
        """Assemble the filter of system calls."""
        alone = self.level is Level.LANDLOCK
        refused = seccomp.refusals(
            tcp=bool(self.network),
            signals=alone and not self.kernel.confines_signals,
            truncation=alone and not self.kernel.confines_truncation,
        )
        return seccomp.program(platform.machine(), tuple(refused))

    def bubblewrap(self, filter_read: int, size: int) -> list[str]:
        """Return what stands before the command: bubblewrap, and in it the shell that carries the box in and out."""
        shared = ["--share-net"] if self.network else []
        # Bubblewrap refuses what its user may not reach, and so do we, only later: the command may do without it.
        reachable = [path for path in self.readable if os.geteuid() != 0 or _is_open_to_all(path)]
        seen = [part for path in reachable for part in ("--ro-bind-try", path, path)]
        devices = [part for path in _DEVICES for part in ("--dev-bind-try", path, path)]
        disk = [
            "--size",
            str(size + self.limits.box_bytes),
            "--tmpfs",
            str(self.box),
            "--remount-ro",
            "/",
            "--chdir",
            str(self.box),
        ]
        shell = ["/bin/sh", "-c", _IN_AND_OUT, str(max(1, self.limits.file_bytes // _BLOCK_BYTES))]
        return [
            "bwrap",
            "--unshare-all",
            *shared,
            "--die-with-parent",
            "--seccomp",
            str(filter_read),
            *seen,
            *devices,
            *disk,
            *shell,
        ]


def _found(command: Sequence[str]) -> list[str]:
    """Name a program by its path, which the launcher wants; what is not found fails there."""
    return [shutil.which(command[0]) or command[0], *command[1:]]


def _readable(named: Sequence[Path]) -> tuple[str, ...]:
    """List what a command may read, each path once."""
    return tuple(dict.fromkeys([*_SYSTEM, sys.prefix, sys.base_prefix, *(str(path.resolve()) for path in named)]))


def _is_open_to_all(path: str) -> bool:
    """Whether every user may reach a path; what is missing needs no reaching."""
    with contextlib.suppress(FileNotFoundError):
        return all(folder.stat().st_mode & 0o001 for folder in Path(path).resolve().parents)
    return True


def _threads_of(user: int) -> int:
    """Count a user's threads, which the limit on them includes."""
    count = 0
    for process in filter(str.isdigit, os.listdir("/proc")):  # noqa: PTH208 - hundreds of names before each start
        with contextlib.suppress(OSError):  # it has ended meanwhile
            facts = os.stat(f"/proc/{process}/task")  # noqa: PTH116
            count += facts.st_nlink - 2 if facts.st_uid == user else 0
    return count


def _give(box: Path, user: int) -> None:
    for path in (box, *box.rglob("*")):
        os.chown(path, user, user, follow_symlinks=False)


def _watch(process: subprocess.Popen[bytes], limits: Limits, cancelled: Callable[[], bool], broken: Callable[[], str]) -> str:
    """Wait for the end of a process or of what it is granted; kill what is left of its group; say how it failed, or nothing."""
    deadline = time.monotonic() + limits.wall_clock.total_seconds()
    try:
        while True:
            with contextlib.suppress(subprocess.TimeoutExpired):
                return _told(process.wait(timeout=_TICK_SECONDS), limits) or broken()
            if cancelled():
                return "was cancelled"
            if time.monotonic() > deadline:
                return f"did not end within {limits.wall_clock.total_seconds():g} seconds"
            if reason := broken():
                return reason
    finally:
        with contextlib.suppress(ProcessLookupError):  # the whole group has ended by itself
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _told(status: int, limits: Limits) -> str:
    """Say what a status means; a shell adds 128 to the number of a signal."""
    number = -status if status < 0 else status - 128 if 128 < status <= 128 + signal.SIGRTMAX else 0
    if number in (signal.SIGXCPU, signal.SIGKILL):
        return f"used more than {max(1, int(limits.cpu.total_seconds()))} seconds of processor time"
    if number == signal.SIGXFSZ:
        return f"wrote a file of more than {limits.file_bytes} bytes"
    return f"was ended by signal {number}" if number else f"ended with status {status}" if status else ""


def _contents(box: Path, limits: Limits) -> tuple[int, int, int]:
    """Count the files in a box, the bytes they take on the disk, and how deep it is; no further than is allowed.

    A folder that the command has closed counts as empty.
    """
    files = size = deepest = 0
    folders = [(box, 1)]
    while folders and files <= limits.files and deepest <= _DEEPEST:
        folder, depth = folders.pop()
        deepest = max(deepest, depth)
        with contextlib.suppress(OSError), os.scandir(folder) as entries:  # what is gone meanwhile counts no more
            for entry in entries:
                files += 1
                size += entry.stat(follow_symlinks=False).st_blocks * _BLOCK_BYTES
                if entry.is_dir(follow_symlinks=False):
                    folders.append((Path(entry.path), depth + 1))
    return files, size, deepest


def _overfull(box: Path, before: int, limits: Limits) -> str:
    """Say what of a box is beyond its limits, or nothing; `before` are the bytes that were in it."""
    files, size, deepest = _contents(box, limits)
    if files > limits.files:
        return f"made more than {limits.files} files"
    if deepest > _DEEPEST:
        return f"made folders more than {_DEEPEST} deep"
    return f"wrote more than {limits.box_bytes} bytes" if size - before > limits.box_bytes else ""


def _empty(box: Path) -> None:
    """Remove what is in a box, however deep, which is more than `shutil.rmtree` can."""
    _reopen(box)
    with os.scandir(box) as entries:
        subprocess.run(["rm", "-rf", "--", *(entry.path for entry in entries)], check=False)


def _reopen(box: Path) -> None:
    """Let the caller remove folders that the command has closed."""
    folders = [box]
    while folders:
        folder = folders.pop()
        with contextlib.suppress(OSError):  # a path that is too long
            folder.chmod(0o700)
            with os.scandir(folder) as entries:
                folders += [Path(entry.path) for entry in entries if entry.is_dir(follow_symlinks=False)]


def _pack(box: Path, into: IO[bytes]) -> int:
    """Write the box as an archive; return the bytes it takes."""
    with tarfile.open(fileobj=into, mode="w") as archive:
        for path in sorted(box.iterdir()):
            archive.add(path, path.name)
    size = into.tell()
    into.seek(0)
    return size


def _unpack(packed: IO[bytes], box: Path, limits: Limits) -> str:
    """Replace the box by an archive, of which every byte may be a lie; say what is wrong with it, or nothing."""
    if not packed.seek(0, os.SEEK_END):  # it was killed before it could hand anything out
        return ""
    packed.seek(0)
    _empty(box)
    try:
        with tarfile.open(fileobj=packed, mode="r:") as archive:
            for count, member in enumerate(_plain(archive)):
                if count > limits.files:
                    return f"made more than {limits.files} files"
                if len(PurePosixPath(member.name).parts) > _DEEPEST:
                    return f"made folders more than {_DEEPEST} deep"
                target = box / member.name
                if member.isdir():
                    target.mkdir(parents=True, exist_ok=True)
                    continue
                target.parent.mkdir(parents=True, exist_ok=True)
                source = archive.extractfile(member)
                assert source is not None
                with target.open("xb") as file:
                    shutil.copyfileobj(source, file)
    except (OSError, ValueError, tarfile.TarError):
        return "left a box that cannot be read"
    return ""


def _plain(archive: tarfile.TarFile) -> Iterator[tarfile.TarInfo]:
    """Take the files and folders of an archive that lie in it; no links, devices or holes."""
    for member in archive:
        path = PurePosixPath(member.name)
        if (member.isdir() or (member.isreg() and not member.issparse())) and not path.is_absolute() and ".." not in path.parts:
            yield member
