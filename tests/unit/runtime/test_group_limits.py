"""Limits of one group: each router enforces them, and a group at its limit can still end."""

from __future__ import annotations

import pytest

from ioa.group.events import Event, MemberJoined, SubgroupOpened
from ioa.group.limits import GroupLimits
from ioa.group.rejection import IllegalEventError
from ioa.protocol.ids import AgentId, TaskId, comm_id_of_task
from ioa.protocol.messages import AsyncTaskAssignment
from tests.unit.group.scenario import card, specs
from tests.unit.runtime.plane import ADA, BOB, EVE, ROOM, Plane

NESTED, OTHER = (comm_id_of_task(ROOM, TaskId(task)) for task in ("t1-1", "t1-2"))


async def _open_nested(plane: Plane) -> None:
    """Open a group with two tasks, and a nested group for one of them."""
    await plane.open(ADA, BOB, EVE)
    await plane.says(ADA, AsyncTaskAssignment(tasks=specs(("t1-1:bob", "t1-2:eve"))))
    await plane.nest("t1-1", BOB, EVE)


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
