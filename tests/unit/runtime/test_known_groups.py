"""Memory of a process about the groups that it records: bounded by their number."""

from __future__ import annotations

import pytest

from ioa.protocol.ids import CommId
from ioa.protocol.messages import ConcludeGroupDiscussion, Phase
from tests.unit.runtime.plane import ADA, BOB, Plane

_ROOMS = [CommId(f"room-{number}") for number in range(20)]


async def test_a_group_that_is_locked_keeps_no_other_from_being_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    """A group that is locked for long is not forgotten; the least recently used other group is."""
    monkeypatch.setattr("ioa.runtime.known_groups._MAX_GROUPS", 5)
    plane = Plane()
    ledger = plane.ledgers[0]
    await ledger.record(_ROOMS[0], plane.begin(_ROOMS[0], ADA, BOB))
    async with ledger._known.of(_ROOMS[0]).lock.held():
        for room in _ROOMS[1:]:
            await ledger.record(room, plane.begin(room, ADA, BOB))
        held = [room for room in _ROOMS if (group := ledger._known.find(room)) is not None and group.head is not None]
        assert held == [_ROOMS[0], *_ROOMS[-4:]]
    await plane.says(ADA, ConcludeGroupDiscussion(), comm_id=_ROOMS[1])
    assert (await plane.state(_ROOMS[1])).phase is Phase.CONCLUDING
