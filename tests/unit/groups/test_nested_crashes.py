"""Whoever opens or ends a nested team, or the group that it works for, dies before each of its writes: every goal ends right.

A death is tried before each write, in the launch of the team and in the end of either group, one after the other. Then whoever
asked asks again, or nobody does, and timers alone go on.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from typing import Any

import pytest

from ioa.errors import ConflictError, ForbiddenError
from ioa.group.events import SubgroupClosed
from ioa.group.requests import Accepted, CancelGoal, Rejected
from ioa.group.state import ClosedTask, Ended
from ioa.protocol.goals import Reason
from ioa.protocol.ids import LOCAL, CommId, GoalName, TaskId, comm_id_of_task
from ioa.protocol.messages import (
    AsyncTaskAssignment,
    ConcludeGroupDiscussion,
    Conclusion,
    Discussion,
    InformTaskProgress,
    InformTaskResult,
    Message,
    Phase,
    TaskOutcome,
)
from tests.unit.group.scenario import specs
from tests.unit.runtime.plane import ADA, BOB, EVE, GOAL, ROOM, Plane

NESTED = comm_id_of_task(ROOM, TaskId("t1-1"))
_MOST_WRITES = 40
_Act = Callable[[], Awaitable[object]]
_WRITES = {
    "log": ["append"],
    "timers": ["schedule"],
    "memberships": ["add", "remove"],
    "open_groups": ["put", "remove"],
    "results": ["publish"],
    "inboxes": ["push"],
}


class _Died(BaseException):
    """A process is gone, and whatever it was doing is not done any further."""


class _Deaths:
    """Have whoever writes into a plane's stores die before a write."""

    def __init__(self, plane: Plane) -> None:
        self._left: int | None = None
        for store, methods in _WRITES.items():
            for name in methods:
                of = getattr(plane, store)
                setattr(of, name, self._mortal(getattr(of, name)))

    def _mortal(self, write: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
        async def mortal(*args: Any, **named: Any) -> Any:
            if self._left == 0:
                raise _Died
            if self._left is not None:
                self._left -= 1
            return await write(*args, **named)

        return mortal

    async def dies(self, before: int, act: _Act) -> bool:
        """Do something, and die before a write, counted from 0; False if it does not write so often."""
        self._left = before
        try:
            await act()
        except _Died:
            return True
        finally:
            self._left = None
        return False


async def _nest(plane: Plane) -> None:
    with suppress(ConflictError, ForbiddenError):  # it was refused, since its task or its group has ended
        await plane.nest("t1-1", BOB, EVE)


async def _with_task() -> tuple[Plane, _Deaths]:
    plane = Plane()
    await plane.open(ADA, BOB, EVE, max_turns=10)
    await plane.says(ADA, AsyncTaskAssignment(tasks=specs(("t1-1:bob",))))
    await plane.says(BOB, InformTaskProgress(task_id=TaskId("t1-1"), number=1))
    return plane, _Deaths(plane)


async def _conclusion(plane: Plane, comm_id: CommId, content: str) -> Message:
    """Bring a group to where its conclusion is all that is missing: one with an open task uses up its turns."""
    while (state := await plane.state(comm_id)).phase is not Phase.CONCLUDING:
        assert state.floor_holder is not None
        named = ADA if state.floor_holder == EVE else EVE
        said = ConcludeGroupDiscussion() if not state.unfinished_tasks else Discussion(content=f"{state.turn}", next_speaker=named)
        assert isinstance(await plane.says(state.floor_holder, said, comm_id=comm_id), Accepted)
    holder = state.floor_holder
    assert holder is not None
    return await plane.message(holder, Conclusion(content=content), comm_id=comm_id)


async def _come_to_rest(plane: Plane, *, swept: bool) -> None:
    """Let a router look at all that is open, as one does that begins, or nobody but timers."""
    if swept:
        for comm_id in plane.open_groups.comm_ids():
            await plane.routers[1].fire_timer(comm_id)
    await plane.run_timers()


async def _check_ended(plane: Plane) -> None:
    """Nothing is open, and no team works for nobody."""
    assert not plane.open_groups.comm_ids()
    for comm_id in (ROOM, NESTED):
        head = await plane.log.last(comm_id)
        assert head is None or head.entry.state.phase.is_terminal, comm_id
        if head is not None:
            await plane.replayed(comm_id)
    assert not (await plane.state()).loans or (await plane.state()).phase.is_terminal


async def _result(plane: Plane) -> tuple[Reason, str]:
    found = await plane.results.get(GoalName(LOCAL, GOAL))
    assert found is not None, "the goal has no result"
    stage = (await plane.state()).stage
    assert isinstance(stage, Ended) and (found.reason, found.content) == (stage.reason, stage.content)
    return found.reason, found.content


@pytest.mark.parametrize("swept", [True, False])
@pytest.mark.parametrize("then", ["asks again", "works alone", "is gone"])
async def test_a_launch_that_dies_is_made_good(then: str, *, swept: bool) -> None:
    """The team is opened once and its conclusion is the task's result; or its assignee's own is, or the task fails."""
    for before in range(_MOST_WRITES):
        plane, deaths = await _with_task()
        died = await deaths.dies(before, partial(_nest, plane))
        if then == "asks again":
            await _nest(plane)
            await plane.send(await _conclusion(plane, NESTED, "Five."), 1)
        elif then == "works alone":
            await plane.says(BOB, InformTaskResult(task_id=TaskId("t1-1"), task_conclusion="Five."), router=1)
        if then != "is gone":
            task = (await plane.state()).task(TaskId("t1-1"))
            assert isinstance(task, ClosedTask) and task.outcome is TaskOutcome.DONE, before
            assert not (await plane.state()).loans, before
            await plane.send(await _conclusion(plane, ROOM, "Ten."), 1)
        await _come_to_rest(plane, swept=swept)
        await _check_ended(plane)
        if then != "is gone":
            assert await _result(plane) == (Reason.CONCLUDED, "Ten."), before
        else:
            assert await _result(plane), before
        closed = [one for one in await plane.entries() if isinstance(one.entry.event, SubgroupClosed)]
        assert len(closed) <= 1
        if not died:
            assert before > 5
            return
    raise AssertionError("a launch writes without end")


async def _cancels(plane: Plane) -> tuple[_Act, _Act]:
    cancel = partial(plane.setup.cancel, LOCAL, CancelGoal(goal_id=GOAL))

    async def again() -> None:
        with suppress(ConflictError):  # it was cancelled the first time
            await cancel()

    return cancel, again


async def _concludes(plane: Plane) -> tuple[_Act, _Act]:
    conclusion = await _conclusion(plane, ROOM, "Ten.")

    async def again() -> None:
        assert not isinstance(await plane.send(conclusion, 1), Rejected)

    return partial(plane.send, conclusion, 0), again


@pytest.mark.parametrize("swept", [True, False])
@pytest.mark.parametrize("repeated", [True, False])
@pytest.mark.parametrize(
    ("ending", "ended"), [(_cancels, (Reason.CANCELLED, "Cancelled on request.")), (_concludes, (Reason.CONCLUDED, "Ten."))]
)
async def test_a_goal_ends_over_its_nested_team(
    ending: Callable[[Plane], Awaitable[tuple[_Act, _Act]]], ended: tuple[Reason, str], *, repeated: bool, swept: bool
) -> None:
    """Whoever launches dies, and whoever ends the goal as well: it has its result, and the team ends, or is never opened."""
    for first in range(_MOST_WRITES):
        launched = False
        for second in range(_MOST_WRITES):
            plane, deaths = await _with_task()
            launched = not await deaths.dies(first, partial(_nest, plane))
            end, again = await ending(plane)
            died = await deaths.dies(second, end)
            if repeated:
                await again()
            await _nest(plane)  # its assignee knows nothing of it yet, and asks again
            await _come_to_rest(plane, swept=swept)
            await _check_ended(plane)
            assert await _result(plane) == ended or (died and not repeated), (first, second)
            if not died:
                assert second > 2
                break
        if launched:
            assert first > 5
            return
    raise AssertionError("a launch writes without end")


@pytest.mark.parametrize("swept", [True, False])
@pytest.mark.parametrize("repeated", [True, False])
async def test_a_nested_teams_end_reaches_its_task(*, repeated: bool, swept: bool) -> None:
    """Whoever takes the team's conclusion dies: its task is closed once, by that conclusion if it was said."""
    for before in range(_MOST_WRITES):
        plane, deaths = await _with_task()
        await _nest(plane)
        conclusion = await _conclusion(plane, NESTED, "Five.")
        died = await deaths.dies(before, partial(plane.send, conclusion, 0))
        if repeated:
            await plane.send(conclusion, 1)
        said = (await plane.state(NESTED)).phase.is_terminal
        await _come_to_rest(plane, swept=swept)
        await _check_ended(plane)
        closed = [one.entry.event for one in await plane.entries() if isinstance(one.entry.event, SubgroupClosed)]
        assert [one.content for one in closed if said] == ["Five."] * said, before
        assert await _result(plane), before
        if not died:
            assert before > 2
            return
    raise AssertionError("a conclusion writes without end")
