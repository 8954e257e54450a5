"""What the tests fork from one process that has imported it: services, agents, commands. A start takes milliseconds, not a second.

A process has one fork server, whoever asks for it, and whoever asks first decides what it has imported: hence one list for all.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import pty
import runpy
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from multiprocessing.connection import wait
from multiprocessing.process import BaseProcess
from pathlib import Path

from ioa.local.fork_server import ForkServer

_PRELOADED = (
    "ioa.hosting.__main__",
    "ioa.hosting.agent",
    "ioa_registry.__main__",
    "ioa_groups.__main__",
    "ioa_router.__main__",
    "tests.rig.load_worker",
    "tests.rig.crowd_worker",
    *(f"ioa.cli.{name}" for name in ("main", "agents", "doctor", "goals", "groups", "pruning", "run", "up")),
)
_STREAMS = (("in", os.O_RDONLY), ("out", os.O_WRONLY), ("error", os.O_WRONLY))


def fork_server(logs: Path, env: Mapping[str, str]) -> ForkServer:
    """Return a fork server that has imported what the tests' processes need, all but what discovery alone does."""
    return ForkServer(logs, env, _PRELOADED)


def run_module(
    module: str, arguments: Sequence[str], *, folder: Path, env: Mapping[str, str], given: str, timeout_seconds: float
) -> subprocess.CompletedProcess[str]:
    """Do what `python -m` does, to the module's end, in a folder and an environment, with what is piped into it.

    Raises:
        subprocess.TimeoutExpired: It did not end in time; it was killed.
    """
    with tempfile.TemporaryDirectory() as name:
        streams = Path(name)
        for stream, _ in _STREAMS:
            (streams / stream).write_text(given if stream == "in" else "", encoding="utf-8")
        process = _started(module, arguments, folder, env, streams)
        process.join(timeout_seconds)
        if process.exitcode is None:
            process.kill()
            process.join()
            raise subprocess.TimeoutExpired((module, *arguments), timeout_seconds)
        out, error = ((streams / stream).read_text(encoding="utf-8") for stream in ("out", "error"))
        done = subprocess.CompletedProcess(arguments, process.exitcode, out, error)
        process.close()
        return done


def run_on_terminal(
    module: str, arguments: Sequence[str], *, folder: Path, env: Mapping[str, str], timeout_seconds: float
) -> bytes:
    """Do what `python -m` does, to the module's end, on a terminal, and return all that the terminal was given.

    Raises:
        subprocess.TimeoutExpired: It wrote nothing for so long, and has not ended; it was killed.
    """
    ours, theirs = pty.openpty()
    with tempfile.TemporaryDirectory() as name, contextlib.ExitStack() as stack:
        stack.callback(os.close, ours)
        streams = Path(name)
        for stream, _ in _STREAMS:
            (streams / stream).symlink_to(os.devnull if stream == "in" else os.ttyname(theirs))
        process = _started(module, arguments, folder, env, streams)
        written = b""
        while process.sentinel not in (ready := wait([ours, process.sentinel], timeout_seconds)):
            if not ready:
                process.kill()
                process.join()
                raise subprocess.TimeoutExpired((module, *arguments), timeout_seconds)
            written += os.read(ours, 65_536)
        process.join()
        process.close()
        os.close(theirs)
        with contextlib.suppress(OSError):  # how a terminal ends whose other side is closed
            while part := os.read(ours, 65_536):
                written += part
        return written


def _started(module: str, arguments: Sequence[str], folder: Path, env: Mapping[str, str], streams: Path) -> BaseProcess:
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(list(_PRELOADED))
    process = context.Process(target=_become, args=(module, tuple(arguments), folder, dict(env), streams))
    process.start()
    return process


def _become(module: str, arguments: Sequence[str], folder: Path, env: Mapping[str, str], streams: Path) -> None:
    for number, (stream, mode) in enumerate(_STREAMS):
        os.dup2(os.open(streams / stream, mode), number)
    sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115 -- multiprocessing has replaced it by an empty one
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(env)
    sys.argv[1:] = arguments
    sys.modules.pop(f"{module}.__main__", None)
    runpy.run_module(module, run_name="__main__", alter_sys=True)
