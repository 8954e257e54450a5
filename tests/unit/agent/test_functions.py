"""An author's function runs in a slot, keeps nobody waiting, and is left behind if it never returns."""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import pytest

from ioa.agent.agent_metrics import abandoned_functions
from ioa.agent.function_executor import Functions, Patience, slots_here
from ioa.agent.inquiring import InquiringAside
from ioa.errors import TaskError
from tests.rig.deadline import eventually

_AT_ONCE = timedelta(milliseconds=10)
_SOON = timedelta(milliseconds=50)
_EVER = timedelta(hours=1)


def _patience(left: timedelta = _EVER, lease: timedelta = _EVER) -> Patience:
    return Patience(lease, lambda: left)


async def _call(functions: Functions, function: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
    async with functions.slot(options.pop("patience", _patience())) as slot:
        return await slot.call(function, arguments, **options)


class Stubborn:
    """Functions that go on, whoever tells them to stop, until the test lets them go."""

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


async def test_goals_take_turns() -> None:
    """One that gave out many tasks before has another one wait for one of them, and not for all."""
    functions, done = Functions("worker", 1, _SOON), list[str]()

    async def run(goal: str) -> None:
        async with functions.slot(_patience(), goal) as slot:
            await slot.call(done.append, (goal,))

    async with asyncio.TaskGroup() as group, functions.slot(_patience()):
        for goal in (*["mallory's"] * 4, "bob's", "carol's"):
            group.create_task(run(goal))
        await asyncio.sleep(0)
    assert done == ["mallory's", "bob's", "carol's", "mallory's", "mallory's", "mallory's"]


async def test_users_take_turns() -> None:
    """Whoever has many goals there has another user wait for one of them, and not for all."""
    functions, done = Functions("worker", 1, _SOON), list[str]()

    async def run(user: str, goal: str) -> None:
        async with functions.slot(_patience(), goal, user) as slot:
            await slot.call(done.append, (f"{user} {goal}",))

    async with asyncio.TaskGroup() as group, functions.slot(_patience()):
        for goal in ("1", "1", "2", "3"):
            group.create_task(run("eve", goal))
        group.create_task(run("bob", "1"))
        await asyncio.sleep(0)
    assert done == ["eve 1", "bob 1", "eve 2", "eve 3", "eve 1"]


async def test_one_users_share_leaves_slots_to_others() -> None:
    """Whoever has more tasks there than he may have run at once has another user wait for none of them."""
    functions, let_go, log = Functions("worker", 3, _SOON, of_one_user=2), asyncio.Event(), list[str]()

    async def run(user: str, goal: str) -> None:
        async with functions.slot(_patience(), goal, user) as slot:
            log.append(f"{user} {goal}")
            await slot.call(let_go.wait if user == "eve" else lambda: None, ())

    async with asyncio.TaskGroup() as group:
        for goal in ("1", "1", "2", "3"):
            group.create_task(run("eve", goal))
        await asyncio.sleep(0)
        for goal in ("1", "2"):
            await group.create_task(run("bob", goal))
        log.append("eve's end")
        let_go.set()
    assert log == ["eve 1", "eve 1", "bob 1", "bob 2", "eve's end", "eve 2", "eve 3"]


async def test_who_has_more_than_his_share_is_told_of_that() -> None:
    """However many slots of others are freed meanwhile: his wait is for his own, and somebody else may still do the task."""
    functions, let_go = Functions("worker", 2, _SOON, of_one_user=1), asyncio.Event()

    async def others() -> None:
        while not let_go.is_set():
            async with functions.slot(_patience(), "1", "bob") as slot:
                await slot.call(asyncio.sleep, (0.01,))

    async with asyncio.TaskGroup() as group, functions.slot(_patience(), "1", "eve") as slot:
        running = group.create_task(slot.call(let_go.wait, ()))
        group.create_task(others())
        with pytest.raises(TaskError, match=r"All 1 slots of worker for one user are taken .* none has ended for 0 s\."):
            async with asyncio.timeout(10), functions.slot(_patience(left=timedelta(seconds=0.2)), "2", "eve"):
                pytest.fail("eve has a second slot")
        let_go.set()
        await running


async def test_who_waits_aside_leaves_his_share_to_his_other_tasks() -> None:
    """He has it again, before what waits for its first slot, once the other one has ended."""
    functions, answered, log = Functions("worker", 2, _EVER, of_one_user=1), asyncio.Event(), list[str]()
    asks_aside = asyncio.Event()

    async def asks() -> None:
        async with slots_here()[0].aside():
            asks_aside.set()
            await answered.wait()
        log.append("goes on")

    async def run(function: Callable[..., Any]) -> None:
        async with functions.slot(_patience(), "1", "eve") as slot:
            await slot.call(function, ())

    async def works() -> None:
        log.append("works")
        answered.set()
        await asyncio.sleep(0.01)
        log.append("has worked")

    async with asyncio.TaskGroup() as group:
        group.create_task(run(asks))
        await asks_aside.wait()
        group.create_task(run(works))
        await asyncio.sleep(0)
        group.create_task(run(lambda: log.append("comes last")))
    assert log == ["works", "has worked", "goes on", "comes last"]


async def _begin(functions: Functions, function: Callable[..., Any], stubborn: Stubborn) -> asyncio.Task[Any]:
    running = asyncio.create_task(_call(functions, function))
    await eventually(lambda: stubborn.began.acquire(blocking=False))
    return running


async def _cancelled(running: asyncio.Task[Any]) -> None:
    running.cancel()
    await asyncio.wait([running])
    assert running.cancelled()


async def test_a_call_in_a_thread_sees_its_callers_context() -> None:
    """Context variables, such as a trace, are the caller's, and the thread keeps no process from ending."""
    variable = contextvars.ContextVar("variable", default="none")
    variable.set("mine")

    seen = await _call(
        Functions("worker", 1, _EVER), lambda name: (variable.get(), threading.current_thread().daemon, name), "argument"
    )

    assert seen == ("mine", True, "argument")


async def test_what_a_plain_function_returns_to_be_awaited_is_awaited_in_its_callers_context() -> None:
    """A plain function may return a coroutine."""
    variable = contextvars.ContextVar("variable", default="none")
    variable.set("mine")

    async def later() -> str:
        await asyncio.sleep(0)
        return variable.get()

    assert await _call(Functions("worker", 1, _EVER), lambda: later()) == "mine"


@pytest.mark.parametrize("error", [ValueError("v"), SystemExit(1), KeyboardInterrupt(), asyncio.CancelledError()])
async def test_what_a_function_raises_is_raised(error: BaseException) -> None:
    """Every kind of exception comes back to the caller, from threads and coroutines."""

    def fail() -> None:
        raise error

    async def fail_later() -> None:
        raise error

    for function in (fail, fail_later):
        with pytest.raises(type(error)) as raised:
            await _call(Functions("worker", 1, _EVER), function)
        assert raised.value is error


@pytest.mark.parametrize("kind", ["sync", "swallowing"])
async def test_a_function_that_does_not_stop_is_left_behind(kind: str) -> None:
    """Who waits for it is free at once; after the grace its slot is, and it is counted until it ends."""
    before, functions = abandoned_functions._value.get(), Functions("worker", 1, _AT_ONCE)
    with _stubborn() as stubborn:
        await _cancelled(await _begin(functions, getattr(stubborn, kind), stubborn))

        answer = await _call(functions, lambda: "quick")
        counted = functions.abandoned, abandoned_functions._value.get() - before
    await eventually(lambda: functions.abandoned == 0)

    assert (answer, counted, abandoned_functions._value.get()) == ("quick", (1, 1.0), before)


async def test_a_function_that_stops_keeps_its_slot_until_it_has() -> None:
    """An async function that tidies up first is not run beside its successor, and nothing is left behind."""
    functions, log = Functions("worker", 1, _EVER), list[str]()
    tidy, began = asyncio.Event(), asyncio.Event()

    async def tidying() -> None:
        began.set()
        try:
            await asyncio.Event().wait()
        finally:
            await tidy.wait()
            log.append("tidied")

    running = asyncio.create_task(_call(functions, tidying))
    await began.wait()
    await _cancelled(running)
    following = asyncio.create_task(_call(functions, lambda: log.append("next")))
    await asyncio.sleep(0)
    tidy.set()
    await following

    assert (log, functions.abandoned) == (["tidied", "next"], 0)


async def test_a_function_that_was_stopped_before_it_began_is_no_trouble() -> None:
    """A coroutine that never got to run is not complained about."""

    async def never() -> None:
        raise AssertionError("it ran")

    functions = Functions("worker", 1, _EVER)
    running = asyncio.create_task(_call(functions, never))
    await asyncio.sleep(0)
    await _cancelled(running)

    assert await _call(functions, lambda: "next") == "next"


@pytest.mark.parametrize("kind", ["sync", "swallowing"])
async def test_a_function_is_given_so_much_time_and_no_more(kind: str) -> None:
    """After its timeout the call fails, whatever the function does."""
    functions = Functions("worker", 1, _AT_ONCE)
    with _stubborn() as stubborn, pytest.raises(TaskError, match=r"The function of worker was not done within 0\.02 s"):
        await _call(functions, getattr(stubborn, kind), timeout=timedelta(milliseconds=20))
    await eventually(lambda: functions.abandoned == 0)


async def test_who_waits_in_vain_is_told() -> None:
    """When no slot was freed for half of the time that is left, waiting ends with the reason and a slot is not lost."""
    functions = Functions("worker", 2, _EVER)
    with _stubborn() as stubborn:
        running = [await _begin(functions, stubborn.sync, stubborn) for _ in range(2)]
        with pytest.raises(TaskError) as told:
            await _call(functions, lambda: "never", patience=_patience(left=timedelta(milliseconds=50)))
    await asyncio.gather(*running)
    after = await asyncio.gather(*(_call(functions, lambda: "free") for _ in range(3)))

    assert told.value.message == "All 2 slots of worker are taken by tasks that have run for 0 to 0 s, and none has ended for 0 s."
    assert (told.value.hint, after) == ("Give the task to another agent, or to this one later.", ["free"] * 3)


async def test_an_agent_that_knows_how_long_its_function_takes_waits_no_longer_than_a_lease() -> None:
    """Once a run has ended, runs that take many times as long hang, however much time the task has left."""
    functions = Functions("worker", 1, _EVER)
    await _call(functions, lambda: "quick")
    with _stubborn() as stubborn:
        running = await _begin(functions, stubborn.sync, stubborn)
        with pytest.raises(TaskError, match="All 1 slots of worker are taken"):
            await _call(functions, lambda: "never", patience=_patience(lease=timedelta(milliseconds=50)))
    await running


async def test_a_queue_that_moves_is_waited_in_however_long() -> None:
    """Tasks that wait for longer than a lease in all are done in the order in which they came, as long as others end."""
    functions, done = Functions("worker", 1, _EVER), list[int]()

    async def work(number: int) -> None:
        await asyncio.sleep(0.01)
        done.append(number)

    patience = _patience(lease=timedelta(seconds=1))
    await asyncio.gather(*(_call(functions, work, number, patience=patience) for number in range(150)))

    assert done == list(range(150))


async def test_a_slot_that_was_granted_to_somebody_who_left_is_not_lost() -> None:
    """A waiter that is cancelled in the moment of its turn passes the slot on."""
    functions = Functions("worker", 1, _EVER)
    let_go = asyncio.Event()
    running = asyncio.create_task(_call(functions, let_go.wait))
    await asyncio.sleep(0)
    waiting = asyncio.create_task(_call(functions, lambda: "never"))
    for _ in range(3):
        await asyncio.sleep(0)
    let_go.set()
    await running
    waiting.cancel()
    await asyncio.wait([waiting])

    assert await _call(functions, lambda: "next") == "next"


async def test_what_waits_aside_uses_up_neither_a_slot_nor_its_time() -> None:
    """Another function runs in its place, and it goes on once that has ended, however long that was."""
    functions, answered, log = Functions("worker", 1, _EVER), asyncio.Event(), list[str]()
    asks_aside = asyncio.Event()

    async def asks() -> str:
        [slot] = slots_here()
        log.append("asks")
        async with slot.aside():
            asks_aside.set()
            await answered.wait()
        log.append("goes on")
        return "answered"

    async def works() -> None:
        answered.set()
        await _call(Functions("other", 1, _EVER), asyncio.sleep, 0)
        log.append("works beside it")

    asking = asyncio.create_task(_call(functions, asks, timeout=_SOON))
    await asks_aside.wait()
    with pytest.raises(TaskError, match="not done within"):
        await _call(functions, asyncio.Event().wait, timeout=_SOON)
    await _call(functions, works)
    assert (await asking, log) == ("answered", ["asks", "works beside it", "goes on"])


async def test_a_tool_that_asks_leaves_its_own_slot_and_its_tasks() -> None:
    """Whoever is asked to confirm a call may take longer than a call may."""
    functions, tools = Functions("worker", 1, _EVER), Functions("a tool", 1, _EVER)
    asked, answered, loop = asyncio.Event(), asyncio.Event(), asyncio.get_running_loop()

    async def answer() -> str:
        asked.set()
        await answered.wait()
        return "approve"

    async def task() -> Any:
        return await _call(tools, lambda: InquiringAside(answer(), loop).result(), timeout=_SOON)

    asking = asyncio.create_task(_call(functions, task, timeout=_SOON))
    await asked.wait()
    for freed in (functions, tools):
        with pytest.raises(TaskError, match="not done within"):
            await _call(freed, asyncio.Event().wait, timeout=_SOON)
    answered.set()
    assert await asking == "approve"


async def test_who_gives_up_waiting_goes_on_at_once_and_its_slot_is_counted() -> None:
    """Afterwards no more run at a time than may."""
    functions, log = Functions("worker", 1, _EVER), list[str]()
    running = asyncio.Event()

    async def gives_up() -> None:
        [slot] = slots_here()

        async def wait() -> None:
            async with slot.aside():
                await running.wait()
                await asyncio.Event().wait()

        waiting = asyncio.ensure_future(wait())
        await running.wait()
        waiting.cancel()
        await asyncio.wait([waiting])
        log.append("gave up")

    async def works(name: str) -> None:
        log.append(f"{name} begins")
        running.set()
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        log.append(f"{name} ends")

    await asyncio.gather(_call(functions, gives_up), *(_call(functions, works, name) for name in "ab"))
    log.remove("gave up")
    assert log == ["a begins", "a ends", "b begins", "b ends"]


async def test_who_gives_up_waiting_to_come_back_takes_no_slot_with_it() -> None:
    """Somebody else has its slot by then. It goes on beside that one, and afterwards one runs at a time again."""
    functions, running, most = Functions("worker", 1, _EVER), 0, 0
    other_runs, other_ends = asyncio.Event(), asyncio.Event()

    async def gives_up() -> str:
        [slot] = slots_here()

        async def comes_back() -> None:
            async with slot.aside():
                await other_runs.wait()

        coming = asyncio.ensure_future(comes_back())
        await other_runs.wait()
        for _ in range(3):
            await asyncio.sleep(0)
        coming.cancel()
        await asyncio.wait([coming])
        return "cancelled" if coming.cancelled() else f"failed: {coming.exception()!r}"

    async def holds() -> None:
        other_runs.set()
        await other_ends.wait()

    async def works() -> None:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(0)
        running -= 1

    giving_up = asyncio.create_task(_call(functions, gives_up))
    holding = asyncio.create_task(_call(functions, holds))
    assert await giving_up == "cancelled"
    other_ends.set()
    await holding
    await asyncio.gather(*(_call(functions, works) for _ in range(5)))
    assert most == 1


async def test_two_who_come_back_to_one_slot_take_one() -> None:
    """Both parts of a function step aside; whichever comes back first waits for the slot of both."""
    functions, tries = Functions("worker", 1, _EVER), timedelta(milliseconds=100)
    other_runs, other_ends, has_come = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def asks_twice() -> None:
        [slot] = slots_here()

        async def first() -> None:
            async with slot.aside():
                await other_runs.wait()
            has_come.set()

        async def second() -> None:
            await other_runs.wait()
            for _ in range(3):
                await asyncio.sleep(0)
            async with slot.aside():
                await has_come.wait()

        other = asyncio.ensure_future(first()), asyncio.ensure_future(second())
        await other_runs.wait()
        for _ in range(9):
            await asyncio.sleep(0)
        other_ends.set()
        await asyncio.gather(*other)

    async def holds() -> None:
        other_runs.set()
        await other_ends.wait()

    await asyncio.gather(_call(functions, asks_twice), _call(functions, holds))
    assert await _call(functions, lambda: "next", patience=_patience(tries)) == "next"
