"""One child process and the pipes to it: it is told what to open, and then answers one message after the other."""

from __future__ import annotations

import asyncio
import os
import sys
from asyncio.subprocess import Process
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from signal import Signals
from typing import cast

from ioa.cancellation import fail_after
from ioa.children import send_signal
from ioa.errors import UnavailableError, from_wire
from ioa_discovery.workers.worker_messages import LENGTH, Answered, Failed, Ready, Reply, RequestRefused, packed, unpacked

_STOP_SECONDS = 10.0
_RETRY_HINT = "Try again in a moment."


class WorkerFailedError(UnavailableError):
    """The worker lives and could not do what it was asked."""


class WorkerDiedError(UnavailableError):
    """The worker's process has ended."""


@asynccontextmanager
async def open_process(module: str, *, inherited: Sequence[int] = ()) -> AsyncIterator[Process]:
    """Start `python -m module`, which calls `worker_loop.serve`; kill it when the block ends if it still runs.

    Args:
        module: What to run.
        inherited: File descriptors that it keeps open as long as it lives.
    """
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-P",
        "-m",
        module,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        pass_fds=inherited,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
    )
    try:
        yield process
    finally:
        send_signal(process, Signals.SIGKILL)
        await process.wait()


@asynccontextmanager
async def open_pipe(
    module: str, opening: object, *, inherited: Sequence[int] = (), process: Process | None = None
) -> AsyncIterator[WorkerPipe]:
    """Have a process open something, and end it in good order when the block ends.

    Args:
        module: What it runs.
        opening: Its first message.
        inherited: File descriptors that it keeps open as long as it lives.
        process: One that was started before, of this module and with these; None: start one.

    Raises:
        IoaError: The worker refused to open, with the error that it named.
        WorkerDiedError: It ended before it was ready.
    """
    async with AsyncExitStack() as stack:
        if process is None:
            process = await stack.enter_async_context(open_process(module, inherited=inherited))
        pipe = WorkerPipe(module, process)
        stack.push_async_callback(pipe.aclose)
        match await pipe.exchange(opening):
            case Ready(state):
                pipe.state = state
            case RequestRefused(code, message, hint):
                raise from_wire(code, message, hint)
        yield pipe


class WorkerPipe:
    """A child process that is ready. Made by `open_pipe`."""

    def __init__(self, module: str, process: Process) -> None:
        self._module = module
        self._process = process
        self.pid = process.pid
        self.state: object = None
        """What the worker said when it was ready."""

    async def ask(self, request: object) -> object:
        """Return the answer. Requests must not overlap.

        Raises:
            WorkerFailedError: The worker could not do it.
            WorkerDiedError: Its process ended over it.
        """
        match await self.exchange(request):
            case Answered(value):
                return value
            case Failed(message):
                raise WorkerFailedError(f"{self._module}: {message}", hint=_RETRY_HINT)
            case other:
                raise AssertionError(other)

    async def exchange(self, message: object) -> Reply:
        """Send a message and return the reply."""
        assert self._process.stdin is not None and self._process.stdout is not None
        try:
            self._process.stdin.write(packed(message))
            await self._process.stdin.drain()
            [length] = LENGTH.unpack(await self._process.stdout.readexactly(LENGTH.size))
            return cast(Reply, unpacked(await self._process.stdout.readexactly(length)))
        except (asyncio.IncompleteReadError, ConnectionError):
            raise WorkerDiedError(f"{self._module} (process {self.pid}) died.", hint=_RETRY_HINT) from None

    def kill(self) -> None:
        """Kill the process, if it is still there."""
        send_signal(self._process, Signals.SIGKILL)

    async def until_dead(self) -> None:
        """Wait until the process has ended, however that came."""
        await self._process.wait()

    async def aclose(self) -> None:
        """Have the process end in good order: it does when it finds its input closed. Kill it if it does not."""
        assert self._process.stdin is not None
        try:
            self._process.stdin.close()
            with suppress(TimeoutError):
                async with fail_after(_STOP_SECONDS):
                    await self._process.wait()
        finally:
            self.kill()
            await self._process.wait()
            with suppress(ConnectionError):  # before CPython 3.11.4 asyncio tells of what nobody reads any more, unless it is asked
                await self._process.stdin.wait_closed()
