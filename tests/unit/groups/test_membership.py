"""Telling groups which of their members are lost, and which have returned."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from ioa.concurrency import beside
from ioa.group.events import Event
from ioa.protocol.ids import AgentId, CommId
from ioa.protocol.messages import Discussion
from ioa.protocol.registry import EMPTY_RENEWAL, Deregister
from ioa.runtime.ledger import Recorded
from ioa_groups import member_changes
from tests.rig.deadline import eventually
from tests.unit.runtime.plane import ADA, BOB, LEASE, Plane


async def test_changes_during_restart_are_noticed(opened: Plane) -> None:
    """A watch that starts looks at everybody once, then at each change it is told of."""
    opened.clock.advance(LEASE)
    await opened.join(ADA)

    async def living() -> tuple[AgentId, ...]:
        return (await opened.state()).living()

    async with beside(opened.watch.follow()):
        await eventually(living, lambda found: found == (ADA,))
        await opened.leases.put(BOB, EMPTY_RENEWAL)
        opened.watch.notice(BOB)
        await eventually(living, lambda found: found == (ADA, BOB))
    answer = await opened.says(ADA, Discussion(content="You.", next_speaker=BOB))
    assert answer.outcome == "accepted"


async def test_unreachable_group_delays_no_other_group(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever is raised concerns one group: the others are told at once, and that one when it can be."""
    monkeypatch.setattr(member_changes, "_RETRY_SECONDS", 0.1)
    plane = Plane()
    rooms = [CommId(f"room-{number}") for number in range(40)]
    for room in rooms:
        await plane.ledgers[0].record(room, plane.begin(room, ADA, BOB))
        await plane.memberships.add((ADA, BOB), room)
    await plane.join(BOB)
    plane.clock.advance(LEASE)
    await plane.join(ADA)
    record, broken = plane.ledgers[0].record, {rooms[3]}

    async def fail_some(comm_id: CommId, event: Event) -> Recorded:
        if comm_id in broken:
            raise ValueError("This log cannot be read.")
        return await record(comm_id, event)

    plane.ledgers[0].record = fail_some  # type: ignore[method-assign]

    async def told() -> int:
        return [(await plane.state(room)).living() for room in rooms].count((ADA,))

    async with beside(plane.watch.follow()):
        await eventually(told, (39).__eq__)
        broken.clear()
        await eventually(told, (40).__eq__)


async def test_report_contains_the_latest_state(plane: Plane) -> None:
    """An agent that returns while its groups are told of its loss is lost in none that is told later."""
    rooms = [CommId(f"room-{number}") for number in range(100)]
    for room in rooms:
        await plane.ledgers[0].record(room, plane.begin(room, ADA, BOB))
        await plane.memberships.add((ADA, BOB), room)
    await plane.join(BOB)
    plane.clock.advance(LEASE)
    await plane.join(ADA)
    appended = 0

    def return_half_way() -> None:
        nonlocal appended
        appended += 1
        if appended == 50:
            plane.leases.hear(BOB)
            plane.watch.notice(BOB)

    plane.log.on_append = return_half_way

    async def living() -> set[tuple[AgentId, ...]]:
        return {(await plane.state(room)).living() for room in rooms}

    async with beside(plane.watch.follow()):
        await eventually(lambda: appended >= 50)
        assert await eventually(living, lambda found: found == {(ADA, BOB)})


async def test_agent_that_leaves_during_reports_is_reported_at_its_return(opened: Plane) -> None:
    """A process that ends soon after its start, as one that is rolled out may, is no longer lost to groups once it stays."""
    of, asked, may_go_on = opened.memberships.list_groups, asyncio.Event(), asyncio.Event()

    async def slow(agent_id: AgentId) -> Sequence[CommId]:
        found = await of(agent_id)
        asked.set()
        await may_go_on.wait()
        return found

    async def living() -> tuple[AgentId, ...]:
        return (await opened.state()).living()

    async with beside(opened.watch.follow()):
        opened.clock.advance(LEASE)
        await opened.join(ADA)
        opened.watch.notice(BOB)
        await eventually(living, lambda found: found == (ADA,))
        opened.memberships.list_groups = slow  # type: ignore[method-assign]
        await opened.join(BOB)
        opened.watch.notice(BOB)
        await asked.wait()
        await opened.registry.deregister(Deregister(agent_id=BOB))
        may_go_on.set()
        await eventually(lambda: not opened.watch._running)
        assert await living() == (ADA,)
        await opened.join(BOB)
        opened.watch.notice(BOB)
        await eventually(living, lambda found: found == (ADA, BOB))
