"""Running an author's function where it can hold up nobody, for as long as it wants to, and leaving it behind if it never returns.

Nothing can stop a function that does not look whether it should, nor a coroutine that swallows its cancellation. So a run is no
part of whoever waits for it: it has a daemon thread or a task of its own, and that task is the one kind that lives in no task
group. A run that was told to stop keeps its slot for a moment, in which a decent function ends. After that it is abandoned: its
slot is free for another task, and it is counted for as long as it goes on, for whose goal it ran: a goal that has several left
behind has no other begin, and leaves the agent to others.
"""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import threading
from collections import Counter, deque
from collections.abc import AsyncIterator, Awaitable, Callable, Hashable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import structlog

from ioa.agent.agent_metrics import abandoned_functions
from ioa.cancellation import fail_after
from ioa.errors import TaskError
from ioa.protocol.ids import LOCAL

_HANGS_AFTER = 3
"""A run that takes so many times as long as the longest that has ended is taken to hang."""

_MAX_LEFT_OF_GOAL, _MAX_LEFT_OF_USER = 4, 16
"""A goal of which so many were left behind, and a user of whom, has none begin until one has ended: who gives tasks in one goal of
somebody's, and cancels them, keeps nobody from the others."""

_MAX_AGAINST = 4
"""So many of what was left behind of a user, of however many goals, speak against the agent."""

_TO_GO_ON = object()
"""What has waited aside and waits to go on, in the place of a goal."""

_EVERYBODY = (LOCAL, None)
"""Whose everything is where nobody is asked who he is."""

_slots: contextvars.ContextVar[Sequence[Slot]] = contextvars.ContextVar("slots", default=())

_log = structlog.get_logger(__name__)


@dataclass(frozen=True)
class _Outcome:
    """What a run came to; an exception travels as a value, since a future takes neither `StopIteration` nor `SystemExit`."""

    answer: Any = None
    error: BaseException | None = None


@dataclass(frozen=True)
class Patience:
    """How long a task waits while no slot is freed.

    Attributes:
        lease: At least so long, if the agent knows from runs that have ended how long they take.
        left: How much time the task has left. At most half of it is waited, so that somebody else can still do the task.
    """

    lease: timedelta
    left: Callable[[], timedelta]


class OutOfTimeError(TaskError):
    """A function was not done within its timeout."""


@dataclass
class _OfUser:
    """What one user has of an agent's slots: how many, since when no more, and what waits for one, by its goal."""

    has: int = 0
    freed_at: float = 0.0
    waiting: dict[Hashable, deque[asyncio.Future[None]]] = field(default_factory=dict)

    def take_next(self) -> tuple[Hashable, asyncio.Future[None]]:
        """Take out what waits next, and of which goal: what is to go on, or else of each goal one in turn."""
        goal = _TO_GO_ON if _TO_GO_ON in self.waiting else next(iter(self.waiting))
        waiting = self.waiting.pop(goal)
        slot = waiting.popleft()
        if waiting:
            self.waiting[goal] = waiting  # behind the others
        return goal, slot

    def take_out(self, goal: Hashable, slot: asyncio.Future[None]) -> None:
        """Take out what has given up."""
        self.waiting[goal].remove(slot)
        if not self.waiting[goal]:
            del self.waiting[goal]


class Functions:
    """The runs of one agent's function: so many at once.

    Users take turns, and of each user his goals, so that none waits for all of another one. What has waited aside goes on
    before what its user's goals begin, and in the same turns: he may have answered any number of questions at once.

    Args:
        owner: The agent, as errors and logs name it.
        slots: How many run at once.
        grace: How long a run that was told to stop keeps its slot.
        of_one_user: How many of them may be one user's, so that he leaves some to others even if all of his take long.
    """

    def __init__(self, owner: str, slots: int, grace: timedelta, of_one_user: int | None = None) -> None:
        self._owner = owner
        self._slots = slots
        self._of_one_user = slots if of_one_user is None else min(of_one_user, slots)
        self._free = slots
        self._users: dict[Hashable, _OfUser] = {}
        """Who has slots or waits for one. Of those who wait, who had a turn last stands last."""
        self._freed_at = 0.0
        self._longest: float | None = None
        self._grace = grace.total_seconds()
        self._runs: set[_Run] = set()
        self._left_behind: dict[_Run, Slot] = {}
        """What was told to stop and still runs, and in which slot: of these functions, and of those that they have called in slots
        of others."""

    @property
    def abandoned(self) -> int:
        """How many functions were told to stop, and left behind, and still run; the tools that one called are counted too."""
        return len(self._left_behind)

    @property
    def spoken_against(self) -> int:
        """How many of them speak against the agent: a user who cancels what takes long has as many left behind as he likes."""
        counted = Counter(slot.user for slot in self._left_behind.values())
        return sum(count if user in _EVERYBODY else min(count, _MAX_AGAINST) for user, count in counted.items())

    @asynccontextmanager
    async def slot(self, patience: Patience, goal: Hashable = None, user: Hashable = None) -> AsyncIterator[Slot]:
        """Wait for a slot, in which one function may be called.

        Args:
            patience: How long to wait.
            goal: What it is for: of one goal first come first served.
            user: Whose goal that is.

        Raises:
            TaskError: None was freed within the patience, or what was left behind of the goal keeps it from one that is free.
        """
        await self._take_slot(patience, goal, user)
        slot = Slot(self, user, goal)
        try:
            yield slot
        finally:
            if not slot.is_used:
                self._free_slot(user)

    async def call(self, run: _Run, timeout: timedelta | None) -> Any:
        """Call a function in a slot that was taken for it; see `Slot`."""
        self._runs.add(run)
        run.ended.add_done_callback(lambda _: self._settle(run))
        run.start()
        try:
            async with fail_after(None if timeout is None else timeout.total_seconds()) as run.limit:
                outcome = await asyncio.shield(run.ended)
        except TimeoutError:
            self._stop(run)
            raise OutOfTimeError(f"The function of {self._owner} was not done within {_seconds(timeout)}.") from None
        except asyncio.CancelledError:
            self._stop(run)
            raise
        finally:
            run.limit = None
        if outcome.error is not None:
            raise outcome.error
        return outcome.answer

    async def until_ended(self, within: timedelta) -> None:
        """Wait until every function has ended that was told to stop, but no longer than `within`."""
        if stopping := [run.ended for run in self._runs if run.is_stopping]:
            await asyncio.wait(stopping, timeout=within.total_seconds())

    @asynccontextmanager
    async def leave(self, run: _Run) -> AsyncIterator[None]:
        """Leave the slot of a run to others for as long as the block; see `Slot`."""
        run.step_aside()
        if run.waits == 1:
            self._let_go(run)
        try:
            yield
            if run.waits == 1 and not (run.is_stopping or run.is_left):
                await self._take_again(run.user)
                run.has_slot = True
        finally:
            run.come_back()
            if run.waits or run.is_left:
                self._let_go(run)
            elif not (run.has_slot or run.is_stopping):  # it has given up waiting, and goes on at once
                self._take(run.user)
                run.has_slot = True

    async def _take_again(self, user: Hashable) -> None:
        """Wait for a slot before all of the same user that have none yet, for as long as it takes."""
        if self._may_have(user):
            self._take(user)
            return
        with self._in_line(user, _TO_GO_ON) as slot:
            await asyncio.wait([slot])

    def _has_left_several(self, user: Hashable, goal: Hashable) -> bool:
        of_user = [slot.goal for slot in self._left_behind.values() if slot.user == user]
        several = len(of_user) >= _MAX_LEFT_OF_USER or of_user.count(goal) >= _MAX_LEFT_OF_GOAL
        return several and user not in _EVERYBODY

    def _may_have(self, user: Hashable) -> bool:
        return self._free > 0 and (user not in self._users or self._users[user].has < self._of_one_user)

    def _take(self, user: Hashable) -> None:
        self._free -= 1
        self._users.setdefault(user, _OfUser()).has += 1

    def _let_go(self, run: _Run) -> None:
        if run.has_slot:
            run.has_slot = False
            self._free_slot(run.user)

    async def _take_slot(self, patience: Patience, goal: Hashable, user: Hashable) -> None:
        if self._may_have(user):
            if self._has_left_several(user, goal):
                raise self._kept_from_it()
            self._take(user)
            return
        loop = asyncio.get_running_loop()
        began = loop.time()
        with self._in_line(user, goal) as slot:
            of_user = self._users[user]
            while not slot.done():
                since = max(began, of_user.freed_at if self._has_his_share(of_user) else self._freed_at)
                due = since + self._bearable(patience, loop.time() - since)
                if loop.time() >= due:
                    raise self._hopeless(loop.time() - since, user)
                await asyncio.wait([slot], timeout=due - loop.time())
        slot.result()

    @contextmanager
    def _in_line(self, user: Hashable, goal: Hashable) -> Iterator[asyncio.Future[None]]:
        """Have a user wait for one slot more, which is his once the future has a result. An error in the block gives it up."""
        slot: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        of_user = self._users.setdefault(user, _OfUser())
        if not of_user.waiting:
            self._users[user] = self._users.pop(user)  # behind those who wait already
        of_user.waiting.setdefault(goal, deque()).append(slot)
        try:
            yield slot
        except BaseException:
            if slot.cancel():
                of_user.take_out(goal, slot)
                self._forget(user)
            elif slot.exception() is None:
                self._free_slot(user)
            raise

    def _has_his_share(self, of_user: _OfUser) -> bool:
        """Whether what he has is all that he may have, though there may be more for others."""
        return self._of_one_user < self._slots and of_user.has >= self._of_one_user

    def _bearable(self, patience: Patience, waited: float) -> float:
        """How many seconds may pass without a freed slot, of which `waited` have passed."""
        half = max(0.0, (patience.left().total_seconds() + waited) / 2)
        if self._longest is None:  # nobody can know yet how long this function takes
            return half
        return min(half, max(patience.lease.total_seconds(), self._longest * _HANGS_AFTER))

    def _hopeless(self, waited: float, user: Hashable) -> TaskError:
        now, is_his_share = asyncio.get_running_loop().time(), self._has_his_share(self._users[user])
        counted = [run for run in self._runs if run.has_slot and (run.user == user or not is_his_share)]
        running = [now - run.began_at for run in counted] or [0.0]
        slots = (
            f"{self._of_one_user} slots of {self._owner} for one user" if is_his_share else f"{self._slots} slots of {self._owner}"
        )
        return TaskError(
            f"All {slots} are taken by tasks that have run for {min(running):.0f} to {max(running):.0f} s, and none has ended for"
            f" {waited:.0f} s.",
            hint="Give the task to another agent, or to this one later.",
        )

    def _kept_from_it(self) -> TaskError:
        return TaskError(
            f"{_MAX_LEFT_OF_GOAL} functions of {self._owner} were told to stop and still run for this goal, or {_MAX_LEFT_OF_USER}"
            " for its user; none begins before one of them has ended.",
            hint="Give the task to another agent, or to this one when they have ended.",
        )

    def _free_slot(self, user: Hashable) -> None:
        of_user = self._users[user]
        of_user.freed_at = self._freed_at = asyncio.get_running_loop().time()
        of_user.has -= 1
        self._free += 1
        self._forget(user)
        self._hand_out()

    def _hand_out(self) -> None:
        while self._free > 0 and (next_one := self._next_in_turn()) is not None:
            user, goal, slot = next_one
            if goal is not _TO_GO_ON and self._has_left_several(user, goal):
                slot.set_exception(self._kept_from_it())
                self._forget(user)
            else:  # he had his turn
                self._users[user] = self._users.pop(user)
                self._take(user)
                slot.set_result(None)

    def leave_behind(self, run: _Run, slot: Slot) -> None:
        """Count a run that goes on, for whose goal it is."""
        self._left_behind[run] = slot

    def note_end(self, run: _Run) -> None:
        """Take it that a run that was left behind has ended: another one of its goal may begin."""
        del self._left_behind[run]

    def _forget(self, user: Hashable) -> None:
        if not (self._users[user].has or self._users[user].waiting):
            del self._users[user]

    def _next_in_turn(self) -> tuple[Hashable, Hashable, asyncio.Future[None]] | None:
        """Take out who waits and is next, of each user one in turn, and of him of each goal."""
        for user, of_user in self._users.items():
            if of_user.waiting and self._may_have(user):
                return user, *of_user.take_next()
        return None

    def _stop(self, run: _Run) -> None:
        run.stop()
        if not run.ended.done():
            asyncio.get_running_loop().call_later(self._grace, self._abandon, run)

    def _abandon(self, run: _Run) -> None:
        if run.ended.done():
            return
        run.is_abandoned = True
        for slot in run.slots:
            slot.functions.leave_behind(run, slot)
        abandoned_functions.inc()
        _log.error(
            "function_abandoned", agent_id=self._owner, function=run.name, seconds=round(run.seconds), abandoned=self.abandoned
        )
        self._let_go(run)

    def _settle(self, run: _Run) -> None:
        self._runs.discard(run)
        if run.is_abandoned:
            for slot in run.slots:
                slot.functions.note_end(run)
            abandoned_functions.dec()
            _log.info("abandoned_function_ended", agent_id=self._owner, function=run.name, seconds=round(run.seconds))
            return
        if not run.is_stopping:
            self._longest = max(self._longest or 0.0, run.seconds)
        self._let_go(run)


def slots_here() -> Sequence[Slot]:
    """Return the slots in which whoever asks runs, the outermost first."""
    return _slots.get()


class Slot:
    """The right to call a function once."""

    def __init__(self, functions: Functions, user: Hashable, goal: Hashable) -> None:
        self.functions = functions
        self.user = user
        self.goal = goal
        self._run: _Run | None = None

    @property
    def is_used(self) -> bool:
        """Whether a function was called."""
        return self._run is not None

    @property
    def is_over(self) -> bool:
        """Whether no function runs in it any more, left behind or not."""
        return self._run is None or self._run.ended.done()

    def when_over(self, then: Callable[[], object]) -> None:
        """Call something once the function that was called has really ended, in the loop."""
        assert self._run is not None, "only a function that was called ends"
        self._run.ended.add_done_callback(lambda _: then())

    @asynccontextmanager
    async def aside(self) -> AsyncIterator[None]:
        """Leave the slot to others for as long as the block, in which the function waits for what may take days.

        That time is none of its timeout. It goes on behind the block once a slot is free and it is its user's turn, before all of
        his that wait for their first.
        """
        assert self._run is not None, "only a function that was called waits"
        async with self.functions.leave(self._run):
            yield

    async def call(self, function: Callable[..., Any], arguments: tuple[Any, ...], timeout: timedelta | None = None) -> Any:
        """Call a function and wait for what it returns or raises. Cancelling tells it to stop, and waits for nothing.

        Args:
            function: Sync, which runs in a thread of its own, or async.
            arguments: What it is called with.
            timeout: How long it may run; for ever by default.

        Raises:
            OutOfTimeError: The function was not done within the timeout.
        """
        self._run = _Run(function, arguments, (*_slots.get(), self), self.user)
        return await self.functions.call(self._run, timeout)


class _Run:
    """One run of a function. `ended` is set when it really has ended, whoever waits for it."""

    def __init__(self, function: Callable[..., Any], arguments: tuple[Any, ...], slots: Sequence[Slot], user: Hashable) -> None:
        self._function = function
        self._arguments = arguments
        self._loop = asyncio.get_running_loop()
        self._context = contextvars.copy_context()
        self._context.run(_slots.set, slots)
        self.slots = slots
        self._task: asyncio.Task[None] | None = None
        self.user = user
        self.name = getattr(function, "__name__", "task")
        self.began_at = self._loop.time()
        self.ended: asyncio.Future[_Outcome] = self._loop.create_future()
        self.is_stopping = False
        self.is_abandoned = False
        self.has_slot = True
        self.limit: asyncio.Timeout | None = None
        self.waits = 0
        self._aside_since = 0.0
        self._was_aside = 0.0
        self._due: float | None = None

    @property
    def is_left(self) -> bool:
        """Whether it has no use for a slot any more, though a branch of it may go on: it has ended, or was left behind."""
        return self.is_abandoned or self.ended.done()

    @property
    def seconds(self) -> float:
        """How long it has run, without what it has waited aside."""
        now = self._loop.time()
        return now - self.began_at - self._was_aside - (now - self._aside_since if self.waits else 0.0)

    def step_aside(self) -> None:
        """Wait for something that may take days; some may be waited for at a time."""
        self.waits += 1
        if self.waits == 1:
            self._aside_since = self._loop.time()
            if self.limit is not None and not self.limit.expired():
                self._due = self.limit.when()
                self.limit.reschedule(None)

    def come_back(self) -> None:
        """Wait for one thing less."""
        self.waits -= 1
        if self.waits:
            return
        waited = self._loop.time() - self._aside_since
        self._was_aside += waited
        if self.limit is not None and not self.limit.expired():
            self.limit.reschedule(None if self._due is None else self._due + waited)

    def start(self) -> None:
        """Begin, in a daemon thread if the function is sync: such a thread keeps no process from ending."""
        if inspect.iscoroutinefunction(self._function):
            self._await(self._function(*self._arguments))
        else:
            threading.Thread(target=self._work, name=self.name, daemon=True).start()

    def stop(self) -> None:
        """Tell an async function to stop; a sync one looks at its context, which has been told."""
        self.is_stopping = True
        if self._task is not None:
            self._task.cancel()

    def _work(self) -> None:
        try:
            outcome = _Outcome(answer=self._context.run(self._function, *self._arguments))
        except BaseException as error:  # noqa: BLE001 - raised where the outcome is awaited
            outcome = _Outcome(error=error)
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._return, outcome)

    def _return(self, outcome: _Outcome) -> None:
        """Take what a thread returned; a sync function may return an awaitable."""
        if inspect.iscoroutine(outcome.answer) and self.is_stopping:
            outcome.answer.close()
        elif inspect.isawaitable(outcome.answer):
            self._await(outcome.answer)
            return
        self._end(outcome)

    def _await(self, answer: Awaitable[Any]) -> None:
        def end(_: asyncio.Task[None]) -> None:
            if inspect.iscoroutine(answer):
                answer.close()  # one that was cancelled before it began would complain
            self._end(_Outcome(error=asyncio.CancelledError()))

        self._task = self._loop.create_task(self._follow(answer), context=self._context)
        self._task.add_done_callback(end)

    async def _follow(self, answer: Awaitable[Any]) -> None:
        try:
            outcome = _Outcome(answer=await answer)
        except BaseException as error:  # noqa: BLE001 - raised where the outcome is awaited
            outcome = _Outcome(error=error)
        self._end(outcome)

    def _end(self, outcome: _Outcome) -> None:
        if not self.ended.done():
            self.ended.set_result(outcome)


def _seconds(timeout: timedelta | None) -> str:
    assert timeout is not None
    return f"{timeout.total_seconds():g} s"
