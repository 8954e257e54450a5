"""A process of discovery's own that answers its requests: what computes for long, or holds the GIL, runs there.

The event loop only ever waits. Requests are answered one at a time, urgent ones first, and both queues are bounded. What is not
urgent has a quarter of the time where both wait: by searches that never end nothing would ever be indexed. A worker that dies is
started again. Meanwhile whoever asks is told at once that it is unavailable, and so is whoever waited: what became of a request
that was under way is not known.
"""

from __future__ import annotations

import asyncio
import time
from asyncio.subprocess import Process
from collections import deque
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Any

import structlog
from prometheus_client import Counter

from ioa.cancellation import TaskGroup
from ioa.errors import IoaError, UnavailableError
from ioa_discovery.workers.worker_pipe import WorkerDiedError, WorkerFailedError, WorkerPipe, open_pipe

MAX_URGENT = 1_024
MAX_WAITING = 256
URGENT_TIMES = 3
"""For so many times as long as one that waited has taken, urgent requests go before the next one that waits."""
_FIRST_RESTART_SECONDS = 0.1
_LONGEST_RESTART_SECONDS = 5.0
_RETRY_HINT = "Try again in a moment."

restarts = Counter("ioa_discovery_worker_restarts", "Processes of discovery that died and were started again", ["worker"])

_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class _Asked:
    request: object
    answer: asyncio.Future[object]


@asynccontextmanager
async def open_worker(
    module: str,
    opening: object,
    *,
    inherited: Sequence[int] = (),
    restarted: Callable[[], None] = lambda: None,
    process: Process | None = None,
    now: Callable[[], float] = time.monotonic,
) -> AsyncIterator[ChildWorker]:
    """Start a worker (see `open_pipe`) and keep one running until the block ends.

    Args:
        module: What it runs.
        opening: Its first message.
        inherited: File descriptors that it keeps open as long as it lives.
        restarted: Is called whenever it has been started again.
        process: The first one, if it was started before.
        now: Returns seconds that never go back.

    Raises:
        IoaError: The worker refused to open.
    """
    async with AsyncExitStack() as stack:
        worker = ChildWorker(module, opening, inherited, restarted, now)
        await worker.start(process)
        stack.push_async_callback(worker.aclose)
        async with beside(worker.keep()):
            yield worker


@asynccontextmanager
async def beside(coroutine: Coroutine[Any, Any, None]) -> AsyncIterator[None]:
    """Run a coroutine that never fails beside the body, and cancel it after; an exception of the body is raised unwrapped."""
    failure: Exception | None = None
    async with TaskGroup() as group:
        task = group.create_task(coroutine)
        try:
            yield
        except Exception as error:  # noqa: BLE001 - raised below, outside of the task group
            failure = error
        finally:
            task.cancel()
    if failure is not None:
        raise failure


class ChildWorker:
    """A worker, whichever process runs it now. Made by `open_worker`."""

    def __init__(
        self,
        module: str,
        opening: object,
        inherited: Sequence[int],
        restarted: Callable[[], None],
        now: Callable[[], float],
    ) -> None:
        self._module = module
        self.opening = opening
        """The first message to each process."""
        self._inherited = inherited
        self._restarted = restarted
        self._now = now
        self._urgent_left = 0.0
        self._urgent: deque[_Asked] = deque()
        self._waiting: deque[_Asked] = deque()
        self._any = asyncio.Event()
        self._room = asyncio.Semaphore(MAX_WAITING)
        self._life = AsyncExitStack()
        self._is_retired = False
        self._open_requests = 0
        self._pipe: WorkerPipe | None = None

    @property
    def pid(self) -> int | None:
        """The process that runs it now; None while there is none."""
        return self._pipe.pid if self._pipe is not None else None

    @property
    def backlog(self) -> int:
        """How many requests wait or are under way."""
        return self._open_requests

    @property
    def state(self) -> object:
        """What the process that runs it now said when it was ready.

        Raises:
            UnavailableError: There is none now.
        """
        return self._living().state

    async def ask(self, request: object, *, urgent: bool = False) -> object:
        """Return the worker's answer.

        Raises:
            UnavailableError: It is being started again, died over this request, or too many urgent ones wait.
            WorkerFailedError: It could not do it.
        """
        if not urgent:
            async with self._room:
                return await self._enqueue(self._waiting, request)
        if len(self._urgent) >= MAX_URGENT:
            raise UnavailableError(f"More than {MAX_URGENT} requests wait for {self._module}.", hint=_RETRY_HINT)
        return await self._enqueue(self._urgent, request)

    async def start(self, process: Process | None = None) -> None:
        """Start a process, or take the given one, and wait until it is ready."""
        pipe = open_pipe(self._module, self.opening, inherited=self._inherited, process=process)
        self._pipe = await self._life.enter_async_context(pipe)

    async def keep(self) -> None:
        """Hand over what is asked, and start a process again whenever it dies, until the worker is retired."""
        while not self._is_retired:
            try:
                await self._serve()
            except* WorkerDiedError as died:
                if not self._is_retired:  # one that is retired ends by itself
                    _log.warning("worker_died", worker=self._module, error=str(died.exceptions[0]))
            await self.aclose()
            if not self._is_retired:
                await self._start_again()
                restarts.labels(self._module.rpartition(".")[2]).inc()
                self._restarted()

    def kill(self) -> None:
        """Kill the process that runs it now; another is started."""
        if self._pipe is not None:
            self._pipe.kill()

    async def retire(self) -> None:
        """End the process for good, in good order."""
        self._is_retired = True
        await self.aclose()

    async def aclose(self) -> None:
        """End the process, and tell everybody who waits that there will be no answer. Idempotent."""
        self._pipe = None
        asked = [*self._urgent, *self._waiting]
        self._urgent.clear()
        self._waiting.clear()
        for one in asked:
            if not one.answer.done():
                one.answer.set_exception(self._absent())
        life, self._life = self._life, AsyncExitStack()
        await life.aclose()

    async def _enqueue(self, queue: deque[_Asked], request: object) -> object:
        self._living()
        asked = _Asked(request, asyncio.get_running_loop().create_future())
        queue.append(asked)
        self._any.set()
        self._open_requests += 1
        try:
            return await asked.answer
        finally:
            self._open_requests -= 1

    def _living(self) -> WorkerPipe:
        if self._pipe is None:
            raise self._absent()
        return self._pipe

    def _absent(self) -> UnavailableError:
        return UnavailableError(f"{self._module} died and is being started again.", hint=_RETRY_HINT)

    async def _serve(self) -> None:
        """Hand over requests until the process ends."""
        pipe = self._living()
        async with TaskGroup() as group:
            group.create_task(_raise_when_dead(pipe))
            while True:
                await self._any.wait()
                if not self._urgent and not self._waiting:
                    self._any.clear()
                    continue
                await self._answer_next(pipe)
                await asyncio.sleep(0)  # who was answered asks for the next first: else what waits went in between each time

    async def _answer_next(self, pipe: WorkerPipe) -> None:
        """Answer an urgent request, or one that waits if there is none, or they have had their time since the last that waited."""
        is_urgent = bool(self._urgent) and (not self._waiting or self._urgent_left >= 0)
        asked = (self._urgent if is_urgent else self._waiting).popleft()
        began = self._now()
        await _answer(pipe, asked)
        took = self._now() - began
        self._urgent_left = self._urgent_left - took if is_urgent else URGENT_TIMES * took

    async def _start_again(self) -> None:
        pause = _FIRST_RESTART_SECONDS
        while self._pipe is None:
            await asyncio.sleep(pause)
            pause = min(2 * pause, _LONGEST_RESTART_SECONDS)
            try:
                await self.start()
            except (IoaError, OSError) as error:
                _log.error("worker_not_started", worker=self._module, error=str(error))


async def _raise_when_dead(pipe: WorkerPipe) -> None:
    await pipe.until_dead()
    raise WorkerDiedError(f"Process {pipe.pid} has ended.")


async def _answer(pipe: WorkerPipe, asked: _Asked) -> None:
    """Hand over one request. Whoever asked is told of every outcome, also of this task's being cancelled."""
    if asked.answer.done():
        return
    try:
        value = await pipe.ask(asked.request)
        if not asked.answer.done():
            asked.answer.set_result(value)
    except WorkerFailedError as error:
        _refuse(asked, error)
    except BaseException:
        _refuse(asked, WorkerDiedError(f"Process {pipe.pid} died over this request.", hint=_RETRY_HINT))
        raise


def _refuse(asked: _Asked, error: UnavailableError) -> None:
    if not asked.answer.done():
        asked.answer.set_exception(error)
