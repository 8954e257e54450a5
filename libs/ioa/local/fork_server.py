"""Starting many Python processes at the price of few: one process imports what all of them need, and each is a fork of it.

A system on one machine is a dozen processes, each of which would spend most of its start on the same imports. The fork server is
that of the standard library; it has no threads and runs nothing itself, so that forking it is safe.
"""

from __future__ import annotations

import asyncio
import fcntl
import multiprocessing
import os
import runpy
import signal
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from multiprocessing import forkserver, resource_tracker
from multiprocessing.connection import wait
from pathlib import Path

from ioa.cancellation import fail_after
from ioa.errors import ConflictError

_BLOCKED = frozenset({signal.SIGINT, signal.SIGTERM})
"""What the fork server is deaf to."""
_ORPHAN_SECONDS = 3.0
"""How long a program may take to end after its starter was killed. nats-server ends too, so that no task can be finished."""
_LOCK = "programs.lock"
_LOCK_PATIENCE, _LOCK_POLL_SECONDS = timedelta(seconds=10), 0.05
_SAFE_PATH = "PYTHONSAFEPATH"
_ENVIRONMENT = threading.Lock()
"""Held while this process' environment says what is told to the library's processes alone."""


@dataclass(frozen=True)
class Program:
    """A Python module to run as a process. Its output goes to `<logs>/<name>.log`."""

    name: str
    module: str
    arguments: Sequence[str] = ()
    env: Mapping[str, str] | None = None


def title_of(program: Program) -> str:
    """Return what `ps` shows a program as, such as `ioa: router` or `ioa: agent calculator`."""
    return f"ioa: {program.name.removeprefix('ioa_').replace('agent-', 'agent ', 1)}"


class ChildProcess:
    """A process that runs, or has ended.

    Args:
        process: It.
        library: Held while the library looks at any of its processes: it keeps no lock of its own.
    """

    def __init__(self, process: multiprocessing.process.BaseProcess, library: asyncio.Lock) -> None:
        self._process = process
        self._library = library
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
        async with self._library:
            self._process.join()
            code = self._process.exitcode
        assert code is not None
        return code

    async def stop(self, grace_seconds: float) -> None:
        """End it by its own pid: politely, then by force."""
        if not self._ended.is_set():
            self._process.terminate()
            try:
                async with fail_after(grace_seconds):
                    await self._ended.wait()
            except TimeoutError:
                self._process.kill()
                await self._ended.wait()
        async with self._library:
            self._process.join()
            self._process.close()

    def _see_end(self) -> None:
        asyncio.get_running_loop().remove_reader(self._process.sentinel)
        self._ended.set()


class ForkServer:
    """Start programs. `preloaded` names modules that most of them import; they must start no thread and open nothing."""

    def __init__(self, logs: Path, env: Mapping[str, str], preloaded: Sequence[str]) -> None:
        self._logs = logs
        self._env = env
        self._context = multiprocessing.get_context("forkserver")
        self._context.set_forkserver_preload(list(preloaded))
        self._warm = False
        self._library = asyncio.Lock()

    async def start(self, program: Program) -> ChildProcess:
        """Start a program."""
        await self.warm_up()
        async with self._library:
            env = {**_environment(), **self._env, **(program.env or {})}
            process = self._context.Process(target=_become, args=(program, env, str(self.log_of(program))), name=program.name)
            await _start(process)
        return ChildProcess(process, self._library)

    async def until_orphans_ended(self) -> None:
        """Wait until the programs of an earlier starter that was killed have ended: they use the same folders and ports.

        Raises:
            ConflictError: A program does not end.
        """
        with (self._logs / _LOCK).open("a") as lock:
            try:
                async with fail_after(_LOCK_PATIENCE.total_seconds()):
                    while not _try_lock(lock.fileno()):  # noqa: ASYNC110 - the kernel signals the release of a lock to no loop
                        await asyncio.sleep(_LOCK_POLL_SECONDS)
            except TimeoutError:
                raise ConflictError(
                    f"A process of an earlier system in {self._logs.parent} runs after {_LOCK_PATIENCE.total_seconds():.0f} s.",
                    hint="End the processes whose titles begin with `ioa: `.",
                ) from None

    async def warm_up(self) -> None:
        """Start the server and import the preloaded modules, if that was not done."""
        async with self._library:
            if not self._warm:
                await asyncio.to_thread(self._warm_up)
                self._warm = True

    def _warm_up(self) -> None:
        """Start the server and wait until it has imported everything: it answers only then."""
        # Inherited by the server, which would ignore Ctrl-C only once it has imported everything, and SIGTERM never: where systemd
        # or Docker sends it to all processes at once, nobody could tell how the forks ended. The server ends with its starter.
        # This thread gets no signals anyway.
        # The library's tracker of shared resources, started first by itself, would lift it again.
        with _safe_path():
            resource_tracker.ensure_running()
        signal.pthread_sigmask(signal.SIG_BLOCK, _BLOCKED)
        first = self._context.Process(target=_nothing)
        _fork(first)
        first.join()
        first.close()

    def log_of(self, program: Program) -> Path:
        """Where a program's output goes."""
        return self._logs / f"{program.name}.log"


@contextmanager
def _safe_path() -> Iterator[None]:
    """Have what the library starts in this block take no module out of the folder that it is started in, where anybody may write.

    It starts `python -c`, and can be told so by the environment alone. Forks take their starter's path, whatever the server's is.
    """
    with _ENVIRONMENT:
        before = os.environ.get(_SAFE_PATH)
        os.environ[_SAFE_PATH] = "1"
        try:
            yield
        finally:
            if before is None:
                del os.environ[_SAFE_PATH]
            else:
                os.environ[_SAFE_PATH] = before


def _environment() -> dict[str, str]:
    """Return this process' own environment."""
    with _ENVIRONMENT:
        return dict(os.environ)


async def _start(process: multiprocessing.process.BaseProcess) -> None:
    """Fork, which takes 2 ms, and on a busy machine as long as the fork server waits for a core; if cancelled, leave nothing."""
    starting = asyncio.ensure_future(asyncio.to_thread(_fork, process))
    try:
        await asyncio.shield(starting)
    except asyncio.CancelledError:
        await starting
        process.kill()
        await asyncio.to_thread(process.join)
        raise


def _fork(process: multiprocessing.process.BaseProcess) -> None:
    with _safe_path():
        forkserver.ensure_running()  # the library would begin another one, if somebody has ended it
    process.start()


def _try_lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _nothing() -> None:
    """Take part in warming up."""


def _become(program: Program, env: Mapping[str, str], log: str) -> None:
    """Turn this fork into the program, as if it had been started by `python -m`."""
    starter = multiprocessing.parent_process()
    assert starter is not None
    threading.Thread(target=_end_with, args=(starter.sentinel,), daemon=True).start()
    from setproctitle import setproctitle  # here, since it is not installed where `ioa up` cannot run

    setproctitle(title_of(program))
    # Its own session, so that Ctrl-C in a terminal reaches only the starter, which drains before it stops the others.
    os.setsid()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # drops one that was sent while it was blocked
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _BLOCKED)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    # Never closed: the kernel releases this lock when the program ends.
    fcntl.flock(os.open(Path(log).with_name(_LOCK), os.O_RDWR | os.O_CREAT, 0o600), fcntl.LOCK_SH)
    output = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    for stream, source in ((0, os.open(os.devnull, os.O_RDONLY)), (1, output), (2, output)):
        os.dup2(source, stream)
    os.environ.clear()
    os.environ.update(env)
    sys.argv[1:] = program.arguments
    sys.modules.pop(f"{program.module}.__main__", None)
    runpy.run_module(program.module, run_name="__main__", alter_sys=True)


def _end_with(sentinel: int) -> None:
    """End this process when its starter has ended or was killed: by SIGTERM, then by SIGKILL."""
    wait([sentinel])
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(_ORPHAN_SECONDS)
    os.kill(os.getpid(), signal.SIGKILL)
