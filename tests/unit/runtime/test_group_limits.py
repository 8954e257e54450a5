"""Limits of one group: each router enforces them, and a group at its limit can still end."""

from __future__ import annotations

import pytest

from ioa.group.events import Event, MemberJoined, SubgroupOpened
from ioa.group.rejection import IllegalEventError
from ioa.group.requests import Accepted, Rejected
from ioa.protocol.goals import Reason
from ioa.protocol.ids import AgentId, TaskId, comm_id_of_task
from ioa.protocol.messages import (
    AsyncTaskAssignment,
    ConcludeGroupDiscussion,
    Conclusion,
    Discussion,
    InformTaskResult,
    Pass,
    PassCause,
    SyncTaskAssignment,
)
from ioa.runtime.group_limits import GroupLimits
from tests.unit.group.scenario import card, specs
from tests.unit.runtime.plane import ADA, BOB, EVE, ROOM, Plane

NESTED, OTHER = (comm_id_of_task(ROOM, TaskId(task)) for task in ("t1-1", "t1-2"))


async def _one_task(plane: Plane) -> SyncTaskAssignment:
    turn = (await plane.state()).turn
    return SyncTaskAssignment(tasks=specs((f"t{turn}-1:bob",)))


async def _open_nested(plane: Plane) -> None:
    """Open a group with two tasks, and a nested group for one of them."""
    await plane.open(ADA, BOB, EVE)
    await plane.says(ADA, AsyncTaskAssignment(tasks=specs(("t1-1:bob", "t1-2:eve"))))
    await plane.nest("t1-1", BOB, EVE)


async def test_task_beyond_limit_is_rejected_by_each_router() -> None:
    """Closed tasks count. The rejection lists the legal messages."""
    plane = Plane(GroupLimits(tasks=3))
    await plane.open(ADA, BOB)
    for _ in range(2):
        await plane.says(ADA, given := await _one_task(plane))
        await plane.says(BOB, InformTaskResult(task_id=given.tasks[0].task_id, task_conclusion="Done."))
    turn = (await plane.state()).turn
    two = SyncTaskAssignment(tasks=specs((f"t{turn}-1:bob", f"t{turn}-2:bob")))
    for router in (0, 1):
        refused = await plane.says(ADA, two, router=router)
        assert isinstance(refused, Rejected)
        assert (refused.code, refused.legal) == ("too_many_tasks", ("CONCLUDE_GROUP_DISCUSSION", "PASS"))
        assert refused.message.startswith("This group has assigned 2 tasks; 3 is the limit.")
    assert not isinstance(await plane.says(ADA, await _one_task(plane)), Rejected)


async def test_full_log_accepts_results_and_conclusion_only() -> None:
    """The last eighth is reserved for results of tasks; the conclusion is always accepted."""
    plane = Plane(GroupLimits(log_bytes=40_000))
    await plane.open(ADA, BOB)
    await plane.says(ADA, Discussion(content="a" * 32_000, next_speaker=BOB))
    await plane.says(BOB, given := await _one_task(plane))
    for ledger in plane.ledgers:
        ledger.forget()
    result = await plane.says(BOB, InformTaskResult(task_id=given.tasks[0].task_id, task_conclusion="c" * 9_000))
    refused = [await plane.says(BOB, Discussion(content="b", next_speaker=ADA), router=router) for router in (0, 1)]
    assert not isinstance(result, Rejected)
    assert [(one.code, one.legal) for one in refused if isinstance(one, Rejected)] == [
        ("too_little_left", ("CONCLUDE_GROUP_DISCUSSION",))
    ] * 2
    await plane.says(BOB, ConcludeGroupDiscussion())
    await plane.says(BOB, Conclusion(content="d" * 9_000))
    assert await plane.reason() is Reason.CONCLUDED


async def test_endless_passes_stop_at_limit_of_log() -> None:
    """A pass uses no turn, so the log stops a member that passes forever."""
    plane = Plane(GroupLimits(log_bytes=40_000))
    await plane.open(ADA)
    away, answers = Pass(cause=PassCause.MODEL_UNAVAILABLE), list[Accepted | Rejected]()
    for number in range(40):
        answers.append(await plane.says(ADA, away, router=number % 2))
    last = answers[-1]
    assert isinstance(last, Rejected)
    assert (last.code, last.legal) == ("too_little_left", ("CONCLUDE_GROUP_DISCUSSION",))
    assert isinstance(answers[0], Accepted)
    await plane.says(ADA, ConcludeGroupDiscussion(conclusion=Conclusion(content="Nothing.")))
    assert await plane.reason() is Reason.CONCLUDED


async def test_nested_group_has_limits_of_a_group() -> None:
    """The logs of a group and of its nested group are counted separately."""
    plane = Plane(GroupLimits(log_bytes=40_000))
    await _open_nested(plane)
    await plane.says(BOB, Discussion(content="a" * 36_000, next_speaker=EVE), comm_id=NESTED)
    refused = await plane.says(EVE, Discussion(content="c", next_speaker=BOB), comm_id=NESTED)
    assert isinstance(refused, Rejected) and refused.code == "too_little_left"
    for comm_id in (ROOM, NESTED):
        entries = await plane.entries(comm_id)
        assert entries[-1].log_bytes == sum(stored.size_bytes for stored in entries)


async def test_full_log_rejects_members_and_nested_groups() -> None:
    """Both begin work that the log has no room for. A limit may be lowered while a group runs."""
    plane, fay = Plane(), AgentId("fay")
    await _open_nested(plane)
    await plane.join(fay)
    for ledger in plane.ledgers:
        ledger._limits = GroupLimits(log_bytes=1_000)
    events: tuple[Event, ...] = (
        SubgroupOpened(at=plane.clock.now(), task_id=TaskId("t1-2"), by=EVE, subgroup=OTHER),
        MemberJoined(at=plane.clock.now(), card=card(fay), by=BOB, turn=(await plane.state(NESTED)).turn),
    )
    for comm_id, event in zip((ROOM, NESTED), events, strict=True):
        with pytest.raises(IllegalEventError) as full:
            await plane.ledgers[1].record(comm_id, event)
        assert full.value.code == "too_little_left"
