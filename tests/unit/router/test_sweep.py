"""Sweeping: everything that is open is looked at, whatever is wrong with some of it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from ioa.errors import InvalidInputError, UnavailableError
from ioa.protocol.ids import LOCAL, CommId, GoalId
from ioa.protocol.setup.open_groups import OpenGroup
from ioa.testing.manual_clock import NEW_YEAR
from ioa_router.sweep import Sweep
from tests.rig.deadline import eventually
from tests.rig.memory_open_groups import MemoryOpenGroups

GROUP = OpenGroup(goal_id=GoalId("goal-1"), deadline=NEW_YEAR)


async def _open(number: int) -> tuple[MemoryOpenGroups, list[CommId]]:
    open_groups, comm_ids = MemoryOpenGroups(), [CommId(f"g{one}") for one in range(number)]
    for comm_id in comm_ids:
        await open_groups.put(LOCAL, comm_id, GROUP)
    return open_groups, comm_ids


async def test_every_open_group_is_looked_at_once() -> None:
    """Over all pages, a bounded number of them side by side."""
    open_groups, comm_ids = await _open(1_203)
    seen: list[CommId] = []
    at_work = most = 0

    async def look_at(comm_id: CommId) -> None:
        nonlocal at_work, most
        at_work += 1
        most = max(most, at_work)
        await asyncio.sleep(0)
        seen.append(comm_id)
        at_work -= 1

    await Sweep(open_groups, look_at).once()
    assert (sorted(seen), most) == (sorted(comm_ids), 8)


async def test_a_group_that_cannot_be_read_holds_up_no_other() -> None:
    """Whatever is raised over a group is counted, and the others are looked at; one that is out of reach is named."""
    open_groups, comm_ids = await _open(20)
    errors = {comm_ids[3]: KeyError("odd"), comm_ids[7]: InvalidInputError("garbage"), comm_ids[9]: UnavailableError("away")}
    seen: list[CommId] = []

    async def look_at(comm_id: CommId) -> None:
        seen.append(comm_id)
        if comm_id in errors:
            raise errors[comm_id]

    with pytest.raises(UnavailableError, match="logs of 1 open groups do not answer, such as g9"):
        await Sweep(open_groups, look_at).once()
    assert sorted(seen) == sorted(comm_ids)


async def test_a_sweep_is_repeated_when_asked_and_when_nothing_could_be_listed() -> None:
    """A renewed connection asks for another sweep; an index that is out of reach puts it off."""
    open_groups, [comm_id] = await _open(1)
    seen: list[CommId] = []
    page, failures = open_groups.page, iter([UnavailableError("away")])

    async def failing(*, after: int, limit: int) -> tuple[Sequence[CommId], int | None]:
        for failure in failures:
            raise failure
        return await page(after=after, limit=limit)

    async def look_at(comm_id: CommId) -> None:
        seen.append(comm_id)

    open_groups.page = failing  # type: ignore[method-assign]
    sweep = Sweep(open_groups, look_at)
    async with asyncio.TaskGroup() as group:
        keeping = group.create_task(sweep.run())
        await eventually(lambda: seen == [comm_id])
        sweep.request()
        await eventually(lambda: seen == [comm_id, comm_id])
        keeping.cancel()
