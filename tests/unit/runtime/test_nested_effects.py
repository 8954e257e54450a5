"""Effects of a group on its nested groups: each is carried out once, and again if it was lost."""

from __future__ import annotations

from datetime import timedelta

from ioa.group.requests import Accepted
from ioa.group.state import Awaiting, Discussing
from ioa.ports.group_log import StoredEntry
from ioa.protocol.ids import CommId, TaskId, comm_id_of_task
from ioa.protocol.messages import AskUser, AsyncTaskAssignment, ConcludeGroupDiscussion, Conclusion, Decision, InformTaskResult
from tests.unit.group.scenario import specs
from tests.unit.runtime.plane import ADA, BOB, EVE, ROOM, Plane

NESTED = comm_id_of_task(ROOM, TaskId("t1-1"))


async def _nested(plane: Plane) -> None:
    """Open a group with two tasks, and a nested group for one of them."""
    await plane.open(ADA, BOB, EVE)
    await plane.says(ADA, AsyncTaskAssignment(tasks=specs(("t1-1:bob", "t1-2:eve"))))
    await plane.nest("t1-1", BOB, EVE)


async def test_timer_reads_no_ended_nested_group() -> None:
    """An ended nested group causes no reads."""
    plane = Plane()
    await _nested(plane)
    await plane.says(BOB, ConcludeGroupDiscussion(conclusion=Conclusion(content="Done.")), comm_id=NESTED)
    await plane.nest("t1-2", EVE)
    read = _reads_of(plane)
    for _ in range(3):
        await plane.routers[0].fire_timer(ROOM)
    assert set(read) == {ROOM}
    await plane.says(EVE, InformTaskResult(task_id=TaskId("t1-2"), task_conclusion="Done."))
    read.clear()
    await plane.routers[0].fire_timer(ROOM)
    assert set(read) == {ROOM}


async def test_answer_reaches_nested_group_once() -> None:
    """The answer is owed until the task is closed; each router delivers it at most once."""
    plane = Plane()
    await _nested(plane)
    until = plane.clock.now() + timedelta(minutes=9)
    await plane.says(BOB, AskUser(text="Which?", options=("a", "b"), default="a", until=until), comm_id=NESTED)
    answer = Decision(task_id=TaskId("t1-1"), choice="a")
    assert isinstance(await plane.says(ADA, answer), Accepted)
    read = _reads_of(plane)
    for router in (0, 0, 0, 1, 1):
        await plane.routers[router].fire_timer(ROOM)
    assert read.count(NESTED) == 1


async def test_lost_answer_reaches_nested_group_again() -> None:
    """A server that restarts may have lost the last entries of one log only."""
    plane = Plane()
    await _nested(plane)
    until = plane.clock.now() + timedelta(minutes=9)
    await plane.says(BOB, AskUser(text="Which?", options=("a", "b"), default="a", until=until), comm_id=NESTED)
    await plane.says(ADA, Decision(task_id=TaskId("t1-1"), choice="a"))
    plane.log._entries[NESTED].pop()
    assert isinstance((await plane.state(NESTED)).stage, Awaiting)
    for ledger in plane.ledgers:
        ledger.forget()
    await plane.routers[0].fire_timer(ROOM)
    assert isinstance((await plane.state(NESTED)).stage, Discussing)


def _reads_of(plane: Plane) -> list[CommId]:
    """Return a list of the groups whose last entry is read from now on."""
    read, last = list[CommId](), plane.log.last

    async def noted(comm_id: CommId) -> StoredEntry | None:
        read.append(comm_id)
        return await last(comm_id)

    plane.log.last = noted  # type: ignore[method-assign]
    return read
