"""Calling functions in a process of its own that ends when it is idle, so that an agent keeps no large library loaded.

The child is a fresh interpreter, not a fork: the caller has threads. It ends with its caller too, whose end it sees at the pipe.
Both run the same code as the same user, so that calls and results are pickled.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import threading
import traceback
import weakref
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from importlib import import_module
from itertools import count
from multiprocessing.connection import Connection, Pipe
from typing import Any

from ioa.errors import TaskError

_SERVE = "from ioa.local.idle_child import serve; serve()"
_LOOK_SECONDS = 0.2
_CANCELLED = "The task was cancelled."
_PART, _LEAST_BYTES = 8, 1024**3
"""Which part of the machine's memory a child may take, if nothing is said, and how much at least."""


class IdleChild:
    """A process that is started by a call and ends when none has come for a while. Safe to use from several threads.

    Args:
        idle: How long it waits for the next call.
        longest: How long one call may take, so that the others that wait for it have their turn.
        memory_bytes: How much memory the process may take, so that whatever it is told to read harms nobody else on the machine;
            None: an eighth of the machine's, and 1 GiB at least.
    """

    def __init__(
        self,
        idle: timedelta = timedelta(seconds=30),
        longest: timedelta = timedelta(minutes=2),
        memory_bytes: int | None = None,
    ) -> None:
        self._idle = idle
        self._longest = longest
        self._memory_bytes = memory_bytes or max(_LEAST_BYTES, _memory_here() // _PART)
        self._one_call = threading.Lock()
        self._running: tuple[Connection, subprocess.Popen[bytes]] | None = None
        self._end: Callable[[], object] = lambda: None

    def call(self, function: str, *arguments: object, cancelled: Callable[[], bool] = lambda: False) -> Any:
        """Call a function, named as `module.function` of a module on this process' path, and return its result.

        One call at a time: others wait. Arguments and result are pickled.

        Args:
            function: Its name.
            arguments: What it is called with.
            cancelled: Asked five times a second, while the call waits for others too; if it says so, the process is killed.

        Raises:
            TaskError: The process ended before it answered, or was killed since the call was cancelled or took too long.
            Exception: Whatever the function raises.
        """
        while not self._one_call.acquire(timeout=_LOOK_SECONDS):
            if cancelled():
                raise TaskError(_CANCELLED)
        try:
            while (answer := self._answer((function, arguments), cancelled)) is None:
                pass  # the child had ended, idle, just as it was called
        finally:
            self._one_call.release()
        done, result = answer
        if not done:
            raise result
        return result

    def _answer(self, call: tuple[str, tuple[object, ...]], cancelled: Callable[[], bool]) -> tuple[bool, Any] | None:
        pipe, process = self._send(call)
        try:
            looks = count(1)
            while not pipe.poll(_LOOK_SECONDS):
                if cancelled():
                    raise TaskError(_CANCELLED)
                if next(looks) * _LOOK_SECONDS >= self._longest.total_seconds():
                    raise TaskError(f"No answer was computed within {self._longest.total_seconds():g} s.")
            answer: tuple[bool, Any] = pipe.recv()
            return answer
        except (EOFError, OSError):
            if process.wait() == 0:
                return None
            hint = "It may have run out of memory."
            raise TaskError("The process that computed the answer was killed.", hint=hint) from None
        except BaseException:
            self._end()
            raise

    def _send(self, call: tuple[str, tuple[object, ...]]) -> tuple[Connection, subprocess.Popen[bytes]]:
        """Send a call to the child that runs, or to a new one."""
        if self._running is not None:
            pipe, process = self._running
            with suppress(OSError):
                pipe.send(call)
                return pipe, process
            self._end()
        ours, theirs = Pipe()
        with theirs:
            told = [str(theirs.fileno()), str(self._idle.total_seconds()), str(self._memory_bytes)]
            arguments = [sys.executable, "-c", _SERVE, *told]
            process = subprocess.Popen(arguments, pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL)
        self._running = ours, process
        self._end = weakref.finalize(self, _end, ours, process)
        for message in (sys.path, call):
            ours.send(message)
        return ours, process


def _end(pipe: Connection, process: subprocess.Popen[bytes]) -> None:
    """Leave no process and no pipe behind, neither when another one is started nor with the caller."""
    pipe.close()
    process.kill()
    process.wait()


def _memory_here() -> int:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def _bound_memory(most: int) -> None:
    """Have requests for more memory fail, which Linux does."""
    _, hard = resource.getrlimit(resource.RLIMIT_DATA)
    resource.setrlimit(resource.RLIMIT_DATA, (most if hard == resource.RLIM_INFINITY else min(most, hard), hard))


def serve() -> None:
    """Answer calls until none has come for a while, or the caller has ended."""
    pipe = Connection(int(sys.argv[1]))
    _bound_memory(int(sys.argv[3]))
    with pipe, suppress(EOFError, OSError):
        sys.path[:] = pipe.recv()
        while pipe.poll(float(sys.argv[2])):
            function, arguments = pipe.recv()
            module, _, name = function.rpartition(".")
            try:
                answer = True, getattr(import_module(module), name)(*arguments)
            except MemoryError:
                most = int(sys.argv[3]) // 1024**2
                answer = False, TaskError(f"The answer takes more than {most:,} MiB of memory.", hint="Give a smaller file.")
            except Exception as error:  # noqa: BLE001 -- it is the caller's
                error.add_note(traceback.format_exc())
                answer = False, error
            pipe.send(answer)
