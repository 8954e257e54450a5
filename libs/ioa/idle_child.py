"""Calling functions in processes of their own that end when they are idle, so that an agent keeps no large library loaded.

A child is a fresh interpreter, not a fork: the caller has threads. It ends with its caller too, whose end it sees at the pipe.
Both run the same code as the same user, so that calls and results are pickled.
"""

from __future__ import annotations

import asyncio
import os
import resource
import subprocess
import sys
import traceback
import weakref
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import timedelta
from functools import partial
from importlib import import_module
from itertools import count
from multiprocessing.connection import Connection, Pipe
from multiprocessing.reduction import ForkingPickler
from queue import Empty, LifoQueue
from threading import Event
from typing import Any

from ioa.errors import TaskError

_SERVE = "from ioa.idle_child import serve; serve()"
_LOOK_SECONDS = 0.2
_CANCELLED = "The task was cancelled."
_PART, _LEAST_BYTES = 8, 1024**3
"""Which part of the machine's memory a child may take, if nothing is said, and how much at least."""


class IdleChildren:
    """Processes that are started by calls and end when none has come for a while. Safe to use from several threads.

    Each serves one call at a time, so that what takes long holds up what comes behind it only where all of them do. Who comes gets
    the one that was used last: one after the other, calls have one process.

    Args:
        at_once: How many calls are served at once, each by a process of its own; others wait.
        idle: How long a process waits for the next call.
        longest: How long one call may take, so that the others that wait for it have their turn.
        memory_bytes: How much memory each process may take, so that whatever it is told to read harms nobody else on the machine;
            None: an eighth of the machine's, and 1 GiB at least, so that four at once may have half of it.
        answer_bytes: How much one call may answer, pickled: the caller has to hold that, and its memory is bounded by nothing.
    """

    def __init__(
        self,
        at_once: int = 4,
        idle: timedelta = timedelta(seconds=30),
        longest: timedelta = timedelta(minutes=2),
        memory_bytes: int | None = None,
        answer_bytes: int = 32 * 1024**2,
    ) -> None:
        most_bytes = memory_bytes or max(_LEAST_BYTES, _memory_here() // _PART)
        self._threads = ThreadPoolExecutor(at_once, thread_name_prefix="idle-child")
        self._children: LifoQueue[_IdleChild] = LifoQueue()
        for _ in range(at_once):
            self._children.put(_IdleChild(idle, longest, most_bytes, answer_bytes))

    async def ask(self, function: str, *arguments: object) -> Any:
        """Call a function as `call` does, from an event loop; its process is killed where nobody waits for it any more.

        What waits for its turn holds none of the threads that the loop has for everybody.
        """
        has_ended = Event()
        called = partial(self.call, function, *arguments, cancelled=has_ended.is_set)
        try:
            return await asyncio.get_running_loop().run_in_executor(self._threads, called)
        finally:
            has_ended.set()

    def call(self, function: str, *arguments: object, cancelled: Callable[[], bool] = lambda: False) -> Any:
        """Call a function, named as `module.function` of a module on this process' path, and return its result.

        Arguments and result are pickled.

        Args:
            function: Its name.
            arguments: What it is called with.
            cancelled: Asked five times a second, while the call waits for others too; if it says so, its process is killed.

        Raises:
            TaskError: The process could not be started, ended before it answered, or was killed since the call was cancelled, took
                too long, or answered too much.
            Exception: Whatever the function raises.
        """
        child = self._next_child(cancelled)
        try:
            done, result = child.call((function, arguments), cancelled)
        finally:
            self._children.put(child)
        if not done:
            raise result
        return result

    def _next_child(self, cancelled: Callable[[], bool]) -> _IdleChild:
        while True:
            try:
                return self._children.get(timeout=_LOOK_SECONDS)
            except Empty:
                if cancelled():
                    raise TaskError(_CANCELLED) from None


class _IdleChild:
    """One of the processes, which is not there before it is called, and after it was idle."""

    def __init__(self, idle: timedelta, longest: timedelta, memory_bytes: int, answer_bytes: int) -> None:
        self._idle = idle
        self._longest = longest
        self._memory_bytes = memory_bytes
        self._answer_bytes = answer_bytes
        self._running: tuple[Connection, subprocess.Popen[bytes]] | None = None
        self._end: Callable[[], object] = lambda: None

    def call(self, call: tuple[str, tuple[object, ...]], cancelled: Callable[[], bool]) -> tuple[bool, Any]:
        """Return whether the function has returned, and what it returned or raised; one call at a time."""
        while (answer := self._answer(call, cancelled)) is None:
            pass  # the child had ended, idle, just as it was called
        return answer

    def _answer(self, call: tuple[str, tuple[object, ...]], cancelled: Callable[[], bool]) -> tuple[bool, Any] | None:
        pipe, process = self._send(call)
        try:
            looks = count(1)
            while not pipe.poll(_LOOK_SECONDS):
                if cancelled():
                    raise TaskError(_CANCELLED)
                if next(looks) * _LOOK_SECONDS >= self._longest.total_seconds():
                    raise TaskError(f"No answer was computed within {self._longest.total_seconds():g} s.")
            answer: tuple[bool, Any] = ForkingPickler.loads(pipe.recv_bytes(self._answer_bytes))
            return answer
        except (EOFError, OSError):
            if not pipe.readable:  # it has closed at a message that is too long
                self._end()
                raise TaskError(f"The answer has more than {self._answer_bytes:,} bytes.", hint="Ask for less.") from None
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
            arguments = [sys.executable, "-P", "-c", _SERVE, *told]
            try:
                process = subprocess.Popen(arguments, pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL)
            except OSError as error:
                ours.close()
                raise TaskError(f"No process can be started that computes the answer: {error.strerror}.") from error
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
                answer = ForkingPickler.dumps((True, getattr(import_module(module), name)(*arguments)))
            except MemoryError:
                most = int(sys.argv[3]) // 1024**2
                told = TaskError(f"The answer takes more than {most:,} MiB of memory.", hint="Give a smaller file.")
                answer = ForkingPickler.dumps((False, told))
            except Exception as error:  # noqa: BLE001 -- it is the caller's
                error.add_note(traceback.format_exc())
                answer = ForkingPickler.dumps((False, error))
            pipe.send_bytes(answer)
