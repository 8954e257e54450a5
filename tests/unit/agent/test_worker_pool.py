"""Worker pool: slots, timeouts, functions that ignore cancellation."""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import pytest

from ioa.agent.task_context import UnderWay
from ioa.agent.tasks.worker_pool import WorkerPool, wait_aside
from ioa.errors import TaskError
from tests.rig.deadline import eventually

_AT_ONCE = timedelta(milliseconds=10)
_SOON = timedelta(milliseconds=50)
_EVER = timedelta(hours=1)


async def _call(pool: WorkerPool, function: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
    async with pool.slot(options.pop("within", _EVER), options.pop("user", None)) as slot:
        return await slot.call(function, arguments, **options)


class Stubborn:
    """Functions that ignore cancellation until the test releases them."""

    def __init__(self) -> None:
        self.began = threading.Semaphore(0)
        self.let_go = threading.Event()
        self._let_go = asyncio.Event()

    def sync(self) -> str:
        """Block a thread."""
        self.began.release()
        self.let_go.wait(20)
        return "at last"

    async def swallowing(self) -> str:
        """Swallow every cancellation."""
        self.began.release()
        while not self._let_go.is_set():
            try:
                await self._let_go.wait()
            except asyncio.CancelledError:
                continue
        return "at last"

    def release(self) -> None:
        """Let them all go."""
        self.let_go.set()
        self._let_go.set()


@contextmanager
def _stubborn() -> Iterator[Stubborn]:
    stubborn = Stubborn()
    try:
        yield stubborn
    finally:
        stubborn.release()


async def test_waiting_functions_are_served_by_users_round_robin() -> None:
    """A user with many goals delays another user by one function."""
    pool, done = WorkerPool("worker", 1), list[str]()

    async def run(user: str, goal: str) -> None:
        async with pool.slot(_EVER, user) as slot:
            await slot.call(done.append, (f"{user} {goal}",))

    async with asyncio.TaskGroup() as group, pool.slot(_EVER):
        for goal in ("1", "1", "2", "3"):
            group.create_task(run("eve", goal))
        group.create_task(run("bob", "1"))
        await asyncio.sleep(0)
    assert done == ["eve 1", "bob 1", "eve 1", "eve 2", "eve 3"]


async def _begin(pool: WorkerPool, function: Callable[..., Any], stubborn: Stubborn, **whose: str | None) -> asyncio.Task[Any]:
    running = asyncio.create_task(_call(pool, function, **whose))
    await eventually(lambda: stubborn.began.acquire(blocking=False))
    return running


async def _cancelled(running: asyncio.Task[Any]) -> None:
    running.cancel()
    await asyncio.wait([running])
    assert running.cancelled()


async def test_a_call_sees_its_callers_context() -> None:
    """Context variables, such as a trace, are the caller's, also where a plain function returns a coroutine."""
    variable = contextvars.ContextVar("variable", default="none")
    variable.set("mine")

    async def later(name: str) -> tuple[str, str]:
        await asyncio.sleep(0)
        return variable.get(), name

    pool = WorkerPool("worker", 1)
    assert await _call(pool, lambda name: (variable.get(), threading.current_thread().daemon, name), "ann") == ("mine", True, "ann")
    assert await _call(pool, lambda name: later(name), "ann") == ("mine", "ann")


@pytest.mark.parametrize("error", [ValueError("v"), SystemExit(1), KeyboardInterrupt(), asyncio.CancelledError()])
async def test_exception_of_a_function_is_raised(error: BaseException) -> None:
    """Every exception returns to the caller. An exception that would end the process arrives as an error."""

    def fail() -> None:
        raise error

    async def fail_later() -> None:
        raise error

    for function in (fail, fail_later):
        with pytest.raises(type(error) if isinstance(error, Exception) else TaskError) as raised:
            await _call(WorkerPool("worker", 1), function)
        assert error in (raised.value, raised.value.__cause__)


@pytest.mark.parametrize("kind", ["sync", "swallowing"])
async def test_a_function_that_does_not_stop_gives_its_slot_back(kind: str) -> None:
    """It is counted until it ends."""
    pool = WorkerPool("worker", 1)
    with _stubborn() as stubborn:
        await _cancelled(await _begin(pool, getattr(stubborn, kind), stubborn))
        assert (await _call(pool, lambda: "quick"), len(pool.stopping)) == ("quick", 1)
    await eventually(lambda: not pool.stopping)


@pytest.mark.parametrize("kind", ["sync", "swallowing"])
async def test_function_above_its_timeout_fails(kind: str) -> None:
    """After its timeout the call fails, whatever the function does."""
    pool = WorkerPool("worker", 1)
    with _stubborn() as stubborn, pytest.raises(TaskError, match=r"The function of worker was not done within 0\.02 s"):
        await _call(pool, getattr(stubborn, kind), timeout=timedelta(milliseconds=20))
    await eventually(lambda: not pool.stopping)


async def test_waiting_without_a_free_slot_ends_with_the_reason() -> None:
    """When no slot was freed for half of the time that is left, waiting ends with the reason and a slot is not lost."""
    pool = WorkerPool("worker", 2)
    with _stubborn() as stubborn:
        running = [await _begin(pool, stubborn.sync, stubborn) for _ in range(2)]
        with pytest.raises(TaskError) as told:
            await _call(pool, lambda: "never", within=timedelta(milliseconds=25))
    await asyncio.gather(*running)
    after = await asyncio.gather(*(_call(pool, lambda: "free") for _ in range(3)))

    assert told.value.message == "None of the 2 slots of worker was free within 0.025 s."
    assert (told.value.hint, after) == ("Give the task to another agent, or to this one later.", ["free"] * 3)


async def test_function_that_asks_uses_no_slot_and_no_time() -> None:
    """Nor the slots and the time of the functions that called it."""
    pool, tools = WorkerPool("worker", 1), WorkerPool("a tool", 1)
    asked, answered, loop = asyncio.Event(), asyncio.Event(), asyncio.get_running_loop()

    async def answer() -> str:
        asked.set()
        await answered.wait()
        return "approve"

    async def task() -> Any:
        return await _call(tools, lambda: _start_question(answer, loop).result(), timeout=_SOON)

    asking = asyncio.create_task(_call(pool, task, timeout=_SOON))
    await asked.wait()
    for freed in (pool, tools):
        with pytest.raises(TaskError, match="not done within"):
            await _call(freed, asyncio.Event().wait, timeout=_SOON)
    answered.set()
    assert await asking == "approve"


def _start_question(answer: Callable[[], Awaitable[str]], loop: asyncio.AbstractEventLoop) -> UnderWay[str]:
    return UnderWay(asyncio.run_coroutine_threadsafe(wait_aside(answer), loop), "ask")


async def test_function_cancelled_while_it_waits_for_its_slot_again_frees_no_other() -> None:
    """The pool has as many slots as before."""
    pool, asked, answered = WorkerPool("worker", 1), asyncio.Event(), asyncio.Event()

    async def answer() -> str:
        asked.set()
        await answered.wait()
        return "yes"

    async def asks() -> None:
        await wait_aside(answer)

    asking = asyncio.create_task(_call(pool, asks))
    await asked.wait()
    async with pool.slot(_EVER):
        answered.set()
        with pytest.raises(TaskError, match="None of the 1 slots"):
            await _call(pool, lambda: "second", within=_AT_ONCE)  # the function waits for its slot meanwhile
        await _cancelled(asking)
    async with pool.slot(_AT_ONCE):
        with pytest.raises(TaskError, match="None of the 1 slots"):
            await _call(pool, lambda: "second", within=_AT_ONCE)
