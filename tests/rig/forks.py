"""What the tests fork from one process that has imported it: services, agents, commands. A start takes milliseconds, not a second.

A process has one fork server, whoever asks for it, and whoever asks first decides what it has imported: hence one list for all.
"""

from __future__ import annotations

import asyncio
import contextlib
import multiprocessing
import multiprocessing.context
import os
import runpy
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping, Sequence
from multiprocessing.connection import wait
from multiprocessing.process import BaseProcess
from pathlib import Path

from ioa.concurrency import fail_after
from ioa.local.local_system import Program

_PRELOADED = (
    "ioa.hosting.__main__",
    "ioa.hosting.agent",
    "ioa_registry.__main__",
    "ioa_groups.__main__",
    "ioa_router.__main__",
    "tests.rig.load_worker",
    *(f"ioa.cli.{name}" for name in ("main", "agents", "doctor", "goals", "groups", "operations", "run", "up")),
)
_STREAMS = (("in", os.O_RDONLY), ("out", os.O_WRONLY), ("error", os.O_WRONLY))


_LIBRARY = threading.Lock()
"""Held while multiprocessing looks at its processes: it has no lock."""


class ChildProcess:
    """A fork that runs a program, or has ended."""

    def __init__(self, process: BaseProcess) -> None:
        self._process = process
        self._ended = asyncio.Event()
        asyncio.get_running_loop().add_reader(process.sentinel, self._see_end)
        assert process.pid is not None
        self.pid = process.pid

    @property
    def has_ended(self) -> bool:
        """Whether it has ended."""
        return self._ended.is_set()

    async def wait(self) -> int:
        """Wait until it has ended and return its exit code (negative: the signal)."""
        await self._ended.wait()
        with _LIBRARY:
            self._process.join()
            code = self._process.exitcode
        assert code is not None
        return code

    async def stop(self, grace_seconds: float) -> None:
        """End it: by SIGTERM, and after a while by SIGKILL."""
        if not self.has_ended:
            self._send(signal.SIGTERM)
            try:
                async with fail_after(grace_seconds):
                    await self._ended.wait()
            except TimeoutError:
                self._send(signal.SIGKILL)
        await self.wait()

    def _send(self, number: signal.Signals) -> None:
        with contextlib.suppress(ProcessLookupError):  # it has ended, and the sentinel is not read yet
            os.kill(self.pid, number)

    def _see_end(self) -> None:
        asyncio.get_running_loop().remove_reader(self._process.sentinel)
        self._ended.set()


class ForkServer:
    """Starts programs as forks, with these variables; the output of each goes to `<logs>/<name>.log`."""

    def __init__(self, logs: Path, env: Mapping[str, str]) -> None:
        self._logs = logs
        self._env = env

    def log_of(self, program: Program) -> Path:
        """Return where a program's output goes."""
        return self._logs / f"{program.name}.log"

    async def start(self, program: Program) -> ChildProcess:
        """Start a program."""
        env = {**os.environ, **self._env, **(program.env or {})}
        process = _context().Process(target=_become_program, args=(program, env, self.log_of(program)), name=program.name)
        await asyncio.to_thread(_start, process)
        return ChildProcess(process)


def _context() -> multiprocessing.context.ForkServerContext:
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(list(_PRELOADED))
    return context


def _start(process: BaseProcess) -> None:
    with _LIBRARY:
        process.start()


def _become_program(program: Program, env: Mapping[str, str], log: Path) -> None:
    threading.Thread(target=_end_with_starter, daemon=True).start()
    os.setsid()
    output = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    for stream, source in ((0, os.open(os.devnull, os.O_RDONLY)), (1, output), (2, output)):
        os.dup2(source, stream)
    _run(program.module, program.arguments, env)


def _end_with_starter() -> None:
    starter = multiprocessing.parent_process()
    assert starter is not None
    wait([starter.sentinel])
    os.kill(os.getpid(), signal.SIGKILL)


def _run(module: str, arguments: Sequence[str], env: Mapping[str, str]) -> None:
    """Do what `python -m` does."""
    os.environ.clear()
    os.environ.update(env)
    sys.argv[1:] = arguments
    sys.modules.pop(f"{module}.__main__", None)
    runpy.run_module(module, run_name="__main__", alter_sys=True)


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


def _started(module: str, arguments: Sequence[str], folder: Path, env: Mapping[str, str], streams: Path) -> BaseProcess:
    process = _context().Process(target=_become, args=(module, tuple(arguments), folder, dict(env), streams))
    _start(process)
    return process


def _become(module: str, arguments: Sequence[str], folder: Path, env: Mapping[str, str], streams: Path) -> None:
    for number, (stream, mode) in enumerate(_STREAMS):
        os.dup2(os.open(streams / stream, mode), number)
    sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115 -- multiprocessing has replaced it by an empty one
    os.chdir(folder)
    _run(module, arguments, env)
