"""Questions of groups to their users, through group setup and routers: one answer counts, whoever is restarted meanwhile."""

from __future__ import annotations

from datetime import timedelta

from ioa.protocol.ids import TaskId, comm_id_of_task
from ioa.protocol.messages import AskUser, Decision, SyncTaskAssignment
from tests.unit.group.scenario import specs
from tests.unit.runtime.plane import ADA, BOB, EVE, ROOM, Plane, open_task

TASK = TaskId("t1-1")
NESTED = comm_id_of_task(ROOM, TASK)


def question(plane: Plane, minutes: float = 5) -> AskUser:
    """A question that waits for some minutes."""
    until = plane.clock.now() + timedelta(minutes=minutes)
    return AskUser(text="Shall I?", options=("yes", "no"), default="no", until=until)


async def nested() -> Plane:
    """A nested team of Bob's that has asked."""
    plane = Plane()
    await plane.open(ADA, BOB, EVE)
    await plane.says(ADA, SyncTaskAssignment(tasks=specs(("t1-1:bob",))))
    await plane.nest("t1-1", BOB, EVE)
    await plane.says(BOB, question(plane), comm_id=NESTED)
    held = open_task(await plane.state(), "t1-1").of_team
    assert held is not None and held.text == "Shall I?"
    return plane


async def test_lost_answer_reaches_the_nested_group_again() -> None:
    """A server that restarts may have lost the last entries of a single log."""
    plane = await nested()
    await plane.says(ADA, Decision(task_id=TASK, choice="yes"))
    plane.log._entries[NESTED].pop()
    assert (await plane.state(NESTED)).question is not None
    for ledger in plane.ledgers:
        ledger.forget()
    await plane.routers[0].fire_timer(ROOM)
    assert (await plane.state(NESTED)).floor_holder == BOB
