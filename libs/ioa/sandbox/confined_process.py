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
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import IO, Any

from ioa.disk import remove_folder
from ioa.errors import InvalidInputError
from ioa.sandbox import landlock, seccomp
from ioa.sandbox.box_folder import BLOCK_BYTES, contents, give, overfull, pack, unpack
from ioa.sandbox.levels import Level
from ioa.sandbox.limits import SandboxLimits
from ioa.sandbox.memory import OPEN_FILES, ROOM_OF_COMMANDS
from ioa.sandbox.processes import members, processes, threads

NOBODY = 65534
"""The user that root becomes."""
_LAUNCHER, _HEIR = (str(Path(__file__).with_name(name)) for name in ("launcher.py", "heir.py"))
_SYSTEM = ("/usr", "/bin", "/lib", "/lib32", "/lib64", "/libx32", "/etc/ld.so.cache")
_OF_PYTHON = ("bin", "include", "lib", "lib64", "share", "pyvenv.cfg")
"""What a Python is in its prefix. Somebody's project may lie beside that, with its seeds and what lets in to its system."""
_OF_CONDA = ("conda-meta", "etc", "libexec", "ssl")
"""What else a prefix of Conda's has; by the first it is told from others."""
_DEVICES = ("/dev/null", "/dev/zero", "/dev/urandom")
_TICK_SECONDS = 0.05
_DYING_SECONDS = 5.0
_LOOK_AGAIN_SECONDS = 0.002
_OWN_PROCESSES = 4
"""What bubblewrap and the shell in it take of the processes that are allowed."""
_BEYOND = 1_024
"""How many processes and threads of its user a command may see beside those that are counted when it starts. The kernel counts them
in all containers of a node, where a few of each reach hundreds, and this is what a command makes before it is looked at."""
_MANY, _YIELDING = 16, 10
"""Of how many processes and threads a command is made nicer, and by how much, so that hundreds of them hold up neither its agent
nor the look at them. A few have what others have: beside what works in its container, nicer ones would have next to nothing."""
_ARCHIVE_BYTES_PER_FILE = 4096
_IN_AND_OUT = """\
tar -xf - && {
    blocks=$1
    shift
    (ulimit -f "$blocks"; exec "$@") </dev/null >&2
    status=$?
    tar -cf - . 2>/dev/null
    exit $status
}"""
"""What runs in bubblewrap: the box comes in as an archive and goes out as one, since its disk ends with its namespaces."""


def run(  # noqa: PLR0913 - each is for the caller to say
    command: Sequence[str],
    box: Path,
    limits: SandboxLimits,
    level: Level,
    network: Sequence[int] = (),
    *,
    output: Path,
    readable: Sequence[Path] = (),
    environment: Mapping[str, str] | None = None,
    cancelled: Callable[[], bool] = lambda: False,
    overdue: Callable[[], bool] = lambda: False,
    grace: timedelta = timedelta(0),
    kernel: landlock.Abi | None = None,
) -> str:
    """Run a command that can change nothing but its box; when this returns, no process of it is left.

    It blocks. On `landlock` and `bwrap` the command reads the system's programs and libraries, this Python, and `readable`.

    Args:
        command: The program and its arguments.
        box: The folder it works in, no link. On `bwrap` only files and folders come out of it, no links.
        limits: What it may use.
        level: How it is confined; `level_here` tells what holds on this machine.
        network: Ports to which it may open TCP connections at any address; there is no name service.
        output: The file that gets what it prints, outside of the box, no link.
        readable: What else it may read.
        environment: All of its environment; nothing is passed on by itself.
        cancelled: Asked twenty times a second, and at each file that comes out on `bwrap`; once it says so, the command is killed.
        overdue: Asked likewise, while it runs, of a command that is wanted still and ought to have ended; it is killed, too.
        grace: How long it has before that, from the signal SIGTERM on, to end by itself.
        kernel: What Landlock is asked for; all that this kernel has if nothing is said.

    Returns:
        How it failed, as the predicate of a sentence, such as "did not end within 30 seconds"; nothing if it ended with status 0.

    Raises:
        InvalidInputError: Ports are wanted, and this kernel cannot confine connections to them. Or the box is a link.
        OSError: The output is a link, or cannot be written.
    """
    kernel = kernel or landlock.this_kernel()
    if network and level is not Level.NONE and not kernel.confines_tcp:
        raise InvalidInputError(
            "This kernel cannot confine connections to ports.", hint="Landlock does from Linux 6.7 on; run it without a network."
        )
    box = box.parent.resolve() / box.name  # whoever puts a link in its place later has nothing follow it
    if box.is_symlink():
        raise InvalidInputError(
            f"The folder {box} is a link, and what a command leaves there may be removed.", hint="Name a folder."
        )
    with ExitStack() as stack:
        confined = _Confined(box, limits, level, tuple(network), _readable(readable), kernel)
        plan, prefix = confined.plan(), list[str]()
        printed = stack.enter_context(_emptied(output))
        stack.callback(_give_back, printed)
        stdin: IO[bytes] | None = None
        stdout: IO[bytes] = printed
        passed: tuple[int, ...] = ()
        if level is Level.BWRAP:
            stdin, stdout = stack.enter_context(tempfile.TemporaryFile()), stack.enter_context(tempfile.TemporaryFile())
            size = pack(box, stdin)
            filter_read, filter_write = os.pipe()
            stack.callback(os.close, filter_read)
            os.write(filter_write, confined.filter())  # a few kilobytes, which a pipe holds
            os.close(filter_write)
            passed = (filter_read,)
            prefix = confined.bubblewrap(filter_read, size)
            plan["limits"]["RLIMIT_FSIZE"] = 2 * (size + limits.box_bytes) + limits.files * _ARCHIVE_BYTES_PER_FILE
        elif level is Level.LANDLOCK and os.geteuid() == 0:
            give(box, NOBODY)
        before = contents(box, limits)[1]
        bequeath = stack.enter_context(_heir())

        def start() -> subprocess.Popen[bytes]:
            return subprocess.Popen(
                [sys.executable, "-I", "-S", _LAUNCHER, marshal.dumps(plan).hex(), *_found([*prefix, *command])],
                env=dict(environment or {}), stdin=stdin or subprocess.DEVNULL, stdout=stdout, stderr=printed,
                start_new_session=True, pass_fds=passed,
            )  # fmt: skip

        with ROOM_OF_COMMANDS.shared_by(start) as process:
            bequeath(process.pid)
            broken = partial(confined.broken, process.pid, printed, before)
            reason = _watch(process, limits, lambda: cancelled() or overdue(), grace, broken)
        if stdin is not None:
            return unpack(stdout, box, limits, cancelled) or reason
        if too_full := overfull(box, before, limits):
            remove_folder(box)
            box.mkdir(exist_ok=True)
        return reason or too_full


@dataclass(frozen=True)
class _Confined:
    """What a command is confined to, and how each level is told so."""

    box: Path
    limits: SandboxLimits
    level: Level
    network: tuple[int, ...]
    readable: tuple[str, ...]
    kernel: landlock.Abi

    @property
    def processes(self) -> int:
        """How many processes and threads may run, those included that its level takes."""
        return self.limits.processes + (_OWN_PROCESSES if self.level is Level.BWRAP else 0)

    def broken(self, group: int, printed: IO[bytes], before: int) -> str:
        """Say by what the processes of a group have passed a bound that the kernel does not hold them to, as `run` returns it."""
        holding = members(group)
        running = threads(holding)
        if running > self.processes:
            return f"started more than {self.limits.processes} processes and threads"
        if running > _MANY and self.level is not Level.NONE:
            _have_yield(group)
        if overdrawn := ROOM_OF_COMMANDS.overdrawn(group, holding, self.limits.memory_in_all_bytes):
            return overdrawn
        if _taken(printed) > self.limits.box_bytes:
            return f"reserved more than {self.limits.box_bytes} bytes"
        return overfull(self.box, before, self.limits)

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
            "RLIMIT_NOFILE": OPEN_FILES,
        }
        if sys.platform == "linux":
            bounds["RLIMIT_NPROC"] = threads(processes(), user) + self.processes + _BEYOND
        return {
            "box": "/" if self.level is Level.BWRAP else str(self.box),
            "limits": bounds,
            "user": NOBODY if confined and root else None,
            "search": self.level is Level.LANDLOCK and root and not all(map(is_open_to_all, (*self.readable, str(self.box)))),
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
            owned=alone,
            tcp=bool(self.network),
            epoll=self.limits.epoll,
            signals=alone and not self.kernel.confines_signals,
            truncation=alone and not self.kernel.confines_truncation,
        )
        return seccomp.program(platform.machine(), tuple(refused))

    def bubblewrap(self, filter_read: int, size: int) -> list[str]:
        """Return what stands before the command: bubblewrap, and in it the shell that carries the box in and out."""
        shared = ["--share-net"] if self.network else []
        # Bubblewrap refuses what its user may not reach, and so do we, only later: the command may do without it.
        reachable = [path for path in self.readable if os.geteuid() != 0 or is_open_to_all(path)]
        seen = [part for path in reachable for part in ("--ro-bind-try", path, path)]
        devices = [part for path in _DEVICES for part in ("--dev-bind-try", path, path)]
        box, room = str(self.box), str(size + self.limits.box_bytes)
        disk = ["--size", room, "--tmpfs", box, "--remount-ro", "/", "--chdir", box]
        shell = ["/bin/sh", "-c", _IN_AND_OUT, "sandbox", str(max(1, self.limits.file_bytes // BLOCK_BYTES))]
        confined = ["--unshare-all", *shared, "--die-with-parent", "--seccomp", str(filter_read)]
        return ["bwrap", *confined, *seen, *devices, *disk, *shell]


def _found(command: Sequence[str]) -> list[str]:
    """Name a program by its path, which the launcher wants; what is not found fails there."""
    return [shutil.which(command[0]) or command[0], *command[1:]]


def _readable(named: Sequence[Path]) -> tuple[str, ...]:
    """List what a command may read, each path once."""
    python = (str(Path(prefix, name)) for prefix in (sys.prefix, sys.base_prefix) for name in _names_in(prefix))
    return tuple(dict.fromkeys([*_SYSTEM, *python, *(str(path.resolve()) for path in named)]))


def _names_in(prefix: str) -> tuple[str, ...]:
    return _OF_PYTHON + _OF_CONDA if Path(prefix, _OF_CONDA[0]).is_dir() else _OF_PYTHON


def is_open_to_all(path: str) -> bool:
    """Whether every user may reach a path; what is missing needs no reaching."""
    with contextlib.suppress(FileNotFoundError):
        return all(folder.stat().st_mode & 0o001 for folder in Path(path).resolve().parents)
    return True


def _have_yield(group: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):  # it has ended, or this root may not
        os.setpriority(os.PRIO_PGRP, group, os.getpriority(os.PRIO_PROCESS, 0) + _YIELDING)


def _emptied(output: Path) -> IO[bytes]:
    """Open a file anew, through no link: that would be somebody's who wants another one emptied."""
    return os.fdopen(os.open(output, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o666), "wb")


def _taken(printed: IO[bytes]) -> int:
    """Count the bytes that a file takes on the disk."""
    return os.fstat(printed.fileno()).st_blocks * BLOCK_BYTES


def _give_back(printed: IO[bytes]) -> None:
    """Give back what a file takes on the disk behind its end."""
    os.ftruncate(printed.fileno(), os.fstat(printed.fileno()).st_size)


@contextlib.contextmanager
def _heir() -> Iterator[Callable[[int], None]]:
    """Have somebody end a process group where this process ends in the block; yield what tells him which."""
    command = [sys.executable, "-I", "-S", _HEIR, str(os.getpid())]
    unheard = subprocess.DEVNULL
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=unheard, stderr=unheard, start_new_session=True, env={}) as heir:
        assert heir.stdin is not None
        told = heir.stdin.fileno()
        try:
            yield lambda group: _tell(told, group)
        finally:
            heir.kill()


def _tell(told: int, group: int) -> None:
    with contextlib.suppress(BrokenPipeError):  # somebody has ended him
        os.write(told, b"%d\n" % group)


def _watch(
    process: subprocess.Popen[bytes],
    limits: SandboxLimits,
    cancelled: Callable[[], bool],
    grace: timedelta,
    broken: Callable[[], str],
) -> str:
    """Wait for the end of a process or of what it is granted; kill what is left of its group; say how it failed, or nothing."""
    until = time.monotonic() + limits.wall_clock.total_seconds()
    asked, late = False, f"did not end within {limits.wall_clock.total_seconds():g} seconds"
    try:
        while True:
            with contextlib.suppress(subprocess.TimeoutExpired):
                status = process.wait(timeout=_TICK_SECONDS)
                return late if asked else _told(status, limits) or broken()
            if time.monotonic() > until:
                return late
            if not asked and cancelled():
                asked, late = True, "was cancelled"
                if not grace:
                    return late
                until = min(until, time.monotonic() + grace.total_seconds())
                _ask_to_end(process.pid)
            if reason := broken():
                return reason
    finally:
        with contextlib.suppress(ProcessLookupError, PermissionError):  # the whole group has ended by itself
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        until = time.monotonic() + _DYING_SECONDS
        while _lives(process.pid) and time.monotonic() < until:
            time.sleep(_LOOK_AGAIN_SECONDS)
        _reap(process.pid)


def _ask_to_end(group: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, signal.SIGTERM)


def _lives(group: int) -> bool:
    """Whether a process of a group still runs. One that only waits for its parent to notice its end does not."""
    try:
        os.killpg(group, 0)
    except (ProcessLookupError, PermissionError):
        return False
    for process in members(group):
        with contextlib.suppress(OSError):  # it has ended meanwhile
            if Path(f"/proc/{process}/stat").read_text(errors="replace").rpartition(")")[2].split()[0] not in "ZX":
                return True
    return False


def _reap(group: int) -> None:
    """Take note of the end of what a group has left to this process, as it does where this is a container's first one."""
    with contextlib.suppress(ChildProcessError):  # nothing, as a rule
        while os.waitpid(-group, os.WNOHANG)[0]:
            pass


def _told(status: int, limits: SandboxLimits) -> str:
    """Say what a status means; a shell adds 128 to the number of a signal."""
    number = -status if status < 0 else status - 128 if 128 < status <= 128 + signal.SIGRTMAX else 0
    if number in (signal.SIGXCPU, signal.SIGKILL):
        ran_out = ", or the machine ran out of memory" if number == signal.SIGKILL else ""
        return f"used more than {max(1, int(limits.cpu.total_seconds()))} seconds of processor time{ran_out}"
    if number == signal.SIGXFSZ:
        return f"wrote a file of more than {limits.file_bytes} bytes"
    return f"was ended by signal {number}" if number else f"ended with status {status}" if status else ""
