"""Memory of a process about the groups that it records: bounded by their number."""

from __future__ import annotations

import gc
from types import ModuleType

import pytest

from ioa.group.events import GroupLaunched, TimerFired
from ioa.group.rejection import IllegalEventError
from ioa.protocol.ids import CommId
from ioa.protocol.messages import ConcludeGroupDiscussion, Phase
from ioa.protocol.policy import Policy
from ioa.runtime.ledger import GroupLedger
from tests.unit.group.scenario import launched_under
from tests.unit.group.test_policy import policy_of
from tests.unit.runtime.plane import ADA, BOB, EVE, Plane

_ROOMS = [CommId(f"room-{number}") for number in range(20)]


def _held_by(root: object, kind: type) -> int:
    """How many objects of a kind something holds, at any depth."""
    found, seen, waiting = 0, set[int](), [root]
    while waiting:
        one = waiting.pop()
        if id(one) not in seen and not isinstance(one, type | ModuleType):
            seen.add(id(one))
            found += isinstance(one, kind)
            waiting += gc.get_referents(one)
    return found


async def _open(plane: Plane, room: CommId, prompt: str = "Speak.") -> None:
    """Launch a group under a policy that no other one has."""
    policy = policy_of({"name": "x", "roles": ["a", "b"], "max": 9, "prompt": f"{prompt} This is {room}."})
    [event, *_] = launched_under(policy, {"a": [ADA], "b": [BOB]}, ADA, BOB).log
    assert isinstance(event, GroupLaunched)
    launch = plane.begin(room, ADA, BOB)
    changed = {"policy": policy, "cast": event.charter.cast, "limits": event.charter.limits}
    await plane.ledgers[0].record(room, launch.model_copy(update={"charter": launch.charter.model_copy(update=changed)}))


async def _look(plane: Plane, ledger: GroupLedger, room: CommId) -> None:
    """Do what a timer has a router do."""
    try:
        await ledger.record(room, TimerFired(at=plane.clock.now()))
    except IllegalEventError:
        return


async def test_an_ended_group_leaves_no_policy() -> None:
    """A router knows of ten thousand groups that have ended."""
    plane = Plane()
    await _open(plane, _ROOMS[0])
    await _look(plane, plane.ledgers[1], _ROOMS[0])
    held = _held_by(plane.ledgers[1]._known, Policy)
    plane.clock.advance_to((await plane.state(_ROOMS[0])).limits.deadline)
    await _look(plane, plane.ledgers[1], _ROOMS[0])
    assert (held, _held_by(plane.ledgers[1]._known, Policy)) == (1, 0)
    assert (await plane.state(_ROOMS[0])).phase.is_terminal and EVE not in (await plane.state(_ROOMS[0])).living()


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
