"""An author's function runs in a slot, keeps nobody waiting, and is left behind if it never returns."""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from typing import Any

import pytest

from ioa.agent.agent_metrics import abandoned_functions
from ioa.agent.function_executor import Functions, OutOfTimeError, Patience, slots_here
from ioa.agent.inquiring import InquiringAside
from ioa.errors import TaskError
from ioa.protocol.ids import LOCAL
from tests.rig.deadline import eventually

_AT_ONCE = timedelta(milliseconds=10)
_SOON = timedelta(milliseconds=50)
_EVER = timedelta(hours=1)


def _patience(left: timedelta = _EVER, lease: timedelta = _EVER) -> Patience:
    return Patience(lease, lambda: left)


async def _call(functions: Functions, function: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
    whose = options.pop("goal", None), options.pop("user", None)
    async with functions.slot(options.pop("patience", _patience()), *whose) as slot:
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


async def test_what_a_function_has_called_and_left_behind_is_counted_as_its_own() -> None:
    """As the tools of an agent, which are called in slots of their own: it is the agent whose threads they take."""
    functions = Functions("worker", 1, _SOON)

    async def work() -> Functions:
        tools = Functions("a tool", 1, _AT_ONCE)
        with suppress(OutOfTimeError):
            await _call(tools, stubborn.sync, timeout=_AT_ONCE)
        return tools

    with _stubborn() as stubborn:
        tools = await _call(functions, work)
        await eventually(lambda: tools.abandoned == 1)
        assert functions.abandoned == 1
    await eventually(lambda: tools.abandoned == 0)
    assert functions.abandoned == 0


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


async def test_who_answers_what_his_tasks_ask_takes_turns_with_others() -> None:
    """Whoever answers many at once, each of which asks again, has another user wait for one of them, and not for all."""
    functions, answered, log = Functions("worker", 1, _EVER), asyncio.Event(), list[str]()
    aside = asyncio.Semaphore(0)

    async def asks(number: int) -> None:
        for _ in range(2):
            async with slots_here()[0].aside():
                aside.release()
                await answered.wait()
            log.append(f"eve {number}")

    async def run(user: str, function: Callable[..., Any], *arguments: Any) -> None:
        async with functions.slot(_patience(), "1", user) as slot:
            await slot.call(function, arguments)

    async with asyncio.TaskGroup() as group:
        for number in range(3):
            group.create_task(run("eve", asks, number))
            await aside.acquire()
        async with functions.slot(_patience()):
            answered.set()
            for _ in range(3):
                await asyncio.sleep(0)
            for _ in range(2):
                group.create_task(run("bob", log.append, "bob"))
            await asyncio.sleep(0)
    assert (log[:4], len(log)) == (["eve 0", "bob", "eve 1", "bob"], 8)


async def _begin(functions: Functions, function: Callable[..., Any], stubborn: Stubborn, **whose: str | None) -> asyncio.Task[Any]:
    running = asyncio.create_task(_call(functions, function, **whose))
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


async def _leave(functions: Functions, stubborn: Stubborn, *goals: str) -> None:
    """Have functions of a user's goals left behind, one after the other."""
    for goal in goals:
        before = functions.abandoned
        await _cancelled(await _begin(functions, stubborn.sync, stubborn, goal=goal, user="vera"))
        await eventually(lambda: functions.abandoned == before + 1)  # noqa: B023


async def test_a_goal_that_has_several_left_behind_has_no_other_begin() -> None:
    """It is told so once slots are free, which its user's other goals and others have; the agent is not taken to hang."""
    functions, told = Functions("worker", 2, _AT_ONCE), list[TaskError]()
    with _stubborn() as stubborn:
        await _leave(functions, stubborn, *["led by eve"] * 4)
        async with functions.slot(_patience(), "other", "vera"), functions.slot(_patience(), "other", "vera"):
            waiting = asyncio.create_task(_call(functions, lambda: "never", goal="led by eve", user="vera"))
            others = [asyncio.create_task(_call(functions, lambda: "done", goal="his", user=user)) for user in ("vera", "bob")]
            await asyncio.sleep(0)
        for asked in (waiting, _call(functions, lambda: "never", goal="led by eve", user="vera")):
            with pytest.raises(TaskError) as raised:
                async with asyncio.timeout(10):
                    await asked
            told.append(raised.value)
        assert (len(await asyncio.gather(*others)), functions.spoken_against) == (2, 4)
    message = (
        "4 functions of worker were told to stop and still run for this goal, or 16 for its user; none begins before one of them"
        " has ended."
    )
    assert [one.message for one in told] == [message] * 2
    assert told[0].hint == "Give the task to another agent, or to this one when they have ended."
    await eventually(lambda: functions.abandoned == 0)
    assert await _call(functions, lambda: "free", goal="led by eve", user="vera") == "free"


async def test_a_user_of_whom_many_goals_have_several_left_behind_has_none_begin() -> None:
    """And as few of his speak against the agent as of one goal."""
    functions = Functions("worker", 2, _AT_ONCE)
    with _stubborn() as stubborn:
        await _leave(functions, stubborn, *(str(number % 4) for number in range(15)))
        assert await _call(functions, lambda: "begins", goal="other", user="vera") == "begins"
        await _leave(functions, stubborn, "other")
        with pytest.raises(TaskError, match="or 16 for its user"):
            await _call(functions, lambda: "never", goal="third", user="vera")
        assert (functions.abandoned, functions.spoken_against) == (16, 4)
        assert await _call(functions, lambda: "bob", user="bob") == "bob"
    await eventually(lambda: functions.abandoned == 0)


@pytest.mark.parametrize("whose", [(LOCAL, 9), (None, 9), ("eve", 4)])
async def test_no_more_than_several_of_one_user_speak_against_the_agent(whose: tuple[str | None, int]) -> None:
    """Nine began at once, and all were cancelled. Where nobody is asked who he is one user is everybody."""
    user, expected = whose
    functions = Functions("worker", 9, _AT_ONCE)
    with _stubborn() as stubborn:
        for running in [await _begin(functions, stubborn.sync, stubborn, user=user) for _ in range(9)]:
            await _cancelled(running)
        await eventually(lambda: functions.abandoned == 9)
        assert functions.spoken_against == expected
        if user != "eve":
            assert await _call(functions, lambda: "works", user=user) == "works"
    await eventually(lambda: functions.abandoned == 0)


async def test_what_waits_to_go_on_is_kept_from_it_by_nothing_that_was_left_behind() -> None:
    """It has begun: its task would else stand until its deadline, and be left behind as well."""
    functions, answered, aside = Functions("worker", 1, _AT_ONCE), asyncio.Event(), asyncio.Event()

    async def asks() -> str:
        async with slots_here()[0].aside():
            aside.set()
            await answered.wait()
        return "goes on"

    with _stubborn() as stubborn:
        asking = asyncio.create_task(_call(functions, asks, user="eve"))
        await aside.wait()
        for number in range(4):
            await _cancelled(await _begin(functions, stubborn.sync, stubborn, user="eve"))
            await eventually(lambda: functions.abandoned == number + 1)  # noqa: B023
        async with functions.slot(_patience(), user="bob"):
            waiting = asyncio.create_task(_call(functions, lambda: "begins", user="eve"))
            answered.set()
            for _ in range(3):
                await asyncio.sleep(0)
        assert await asking == "goes on"
        with pytest.raises(TaskError, match="none begins"):
            await waiting


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


async def _most_at_once(functions: Functions) -> int:
    """Return how many of several functions run at once."""
    most = running = 0

    async def run() -> None:
        nonlocal most, running
        running += 1
        most = max(most, running)
        await asyncio.sleep(0.01)
        running -= 1

    patience = _patience(left=timedelta(seconds=2))  # of which half is waited
    await asyncio.gather(*(_call(functions, run, patience=patience) for _ in range(4)))
    return most


@pytest.mark.parametrize("kind", ["async", "sync"])
async def test_who_is_cancelled_while_he_waits_for_his_slot_again_frees_no_other(kind: str) -> None:
    """Neither one that he has not, nor does he keep what he gets when he has been left behind."""
    functions, asked, answered = Functions("worker", 1, _AT_ONCE), asyncio.Event(), asyncio.Event()
    let_go, ended, caught = asyncio.Event(), threading.Event(), list[BaseException]()
    loop = asyncio.get_running_loop()

    async def answer() -> str:
        asked.set()
        await answered.wait()
        return "yes"

    async def asks() -> None:
        try:
            await InquiringAside(answer(), loop)
        except BaseException as error:
            caught.append(error)
            raise
        finally:
            ended.set()

    def asks_in_a_thread() -> None:
        InquiringAside(answer(), loop).result()
        ended.set()

    asking = asyncio.create_task(_call(functions, asks if kind == "async" else asks_in_a_thread))
    await asked.wait()
    running = asyncio.create_task(_call(functions, let_go.wait))
    await asyncio.sleep(0)
    answered.set()
    await asyncio.sleep(0.05)
    await _cancelled(asking)
    await asyncio.sleep(0.05)
    beside = asyncio.create_task(_call(functions, lambda: "beside"))
    await asyncio.sleep(0.05)
    assert not beside.done()
    let_go.set()
    await running
    await beside
    await eventually(ended.is_set)
    assert await _most_at_once(functions) == 1
    assert all(isinstance(error, asyncio.CancelledError) for error in caught)


async def test_who_asks_more_while_he_waits_for_his_slot_again_has_one() -> None:
    """Of two branches of a function, one asks again while the other, which was answered, waits for the function's slot."""
    functions, running, let_go = Functions("worker", 1, _EVER), asyncio.Event(), asyncio.Event()
    asks_again, answered = asyncio.Event(), asyncio.Event()

    async def asks() -> None:
        [slot] = slots_here()

        async def first() -> None:
            async with slot.aside():
                await running.wait()

        async def second() -> None:
            await running.wait()
            await asyncio.sleep(0.02)
            async with slot.aside():
                asks_again.set()
                await answered.wait()

        await asyncio.gather(first(), second())

    async def works() -> None:
        running.set()
        await let_go.wait()

    asking = asyncio.create_task(_call(functions, asks))
    await asyncio.sleep(0)
    working = asyncio.create_task(_call(functions, works))
    await asks_again.wait()
    let_go.set()
    await working
    async with functions.slot(_patience(left=timedelta(seconds=2))) as slot:
        assert await slot.call(lambda: "meanwhile", ()) == "meanwhile"
    answered.set()
    await asking
    assert await _most_at_once(functions) == 1


async def test_a_branch_that_outlasts_its_function_takes_no_slot() -> None:
    """Nobody would free it: the function has ended."""
    functions, answered, branches = Functions("worker", 1, _EVER), asyncio.Event(), list[asyncio.Task[None]]()

    async def asks_and_leaves() -> None:
        [slot] = slots_here()

        async def branch() -> None:
            async with slot.aside():
                await answered.wait()

        branches.append(asyncio.create_task(branch()))
        await asyncio.sleep(0)

    await _call(functions, asks_and_leaves)
    answered.set()
    await asyncio.wait(branches)
    assert await _most_at_once(functions) == 1
