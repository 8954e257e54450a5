"""How the ways of files are followed: as far as they lead, and with no more in memory than one entry."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from ioa.errors import RateLimitedError
from ioa.group.events import Event, GroupLaunched, Said
from ioa.ports.group_log import StoredEntry
from ioa.protocol.goals import Artifact, Origin
from ioa.protocol.ids import LOCAL, AgentId, CommId, GoalId, GoalName, TaskId
from ioa.protocol.messages import InformTaskProgress, InformTaskResult, SyncTaskAssignment
from ioa_groups.provenance import Provenance, TrackedFile, owner_of
from tests.unit.group.scenario import specs
from tests.unit.groups.test_files import put
from tests.unit.runtime.plane import ADA, BOB, EVE, GOAL, Plane


async def _told(plane: Plane) -> Artifact:
    """Have bob tell of a file in the group of a goal."""
    await plane.open(ADA, BOB, max_turns=100)
    await plane.says(ADA, SyncTaskAssignment(tasks=specs(("t1-1:bob",))))
    await plane.says(BOB, InformTaskProgress(task_id=TaskId("t1-1"), number=1))
    file = await put(plane, BOB, b"told", "a")
    await plane.says(BOB, InformTaskResult(task_id=TaskId("t1-1"), task_conclusion="One.", artifacts=(file,)))
    return file


def _copied(comm_id: CommId, number: int, entries: Sequence[StoredEntry], teller: AgentId) -> list[StoredEntry]:
    """The log of a fork, in which another agent stands in the place of who told of the file."""
    copied = list[StoredEntry]()
    for place, stored in enumerate(entries, 1):
        event: Event = stored.entry.event
        if isinstance(event, GroupLaunched):
            of = GOAL if number == 1 else GoalId(f"fork-{number - 1}")
            told = {"comm_id": comm_id, "forked_from": Origin(goal_id=of, at=10_000 * (number - 1) + entries[-1].seq)}
            event = event.model_copy(update={"charter": event.charter.model_copy(update=told)})
        elif isinstance(event, Said) and event.message.header.sender == BOB:
            header = event.message.header.model_copy(update={"sender": teller})
            event = event.model_copy(update={"message": event.message.model_copy(update={"header": header})})
        state = stored.entry.state.model_copy(update={"comm_id": comm_id, "copying": len(entries) - place + 1})
        entry = stored.entry.model_copy(update={"event": event, "state": state})
        copied.append(replace(stored, seq=stored.seq + 10_000 * number, entry=entry))
    return copied


async def test_one_request_has_no_more_read_than_a_bound() -> None:
    """Ways that are longer than what is remembered push out each other's: each entry of each fork had all below it read anew."""
    plane = Plane()
    file = await _told(plane)
    await plane.says(ADA, SyncTaskAssignment(tasks=specs(("t2-2:bob",))))
    await plane.says(BOB, InformTaskResult(task_id=TaskId("t2-2"), task_conclusion="Two.", artifacts=(file,)))
    entries = await plane.entries()
    rooms = [GoalName(LOCAL, GoalId(f"fork-{number}")).comm_id for number in range(1, 21)]
    for number, comm_id in enumerate(rooms, 1):
        plane.log._entries[comm_id] = _copied(comm_id, number, entries, EVE)
    reads, page = 0, plane.log.read

    async def counted(comm_id: CommId, **bounds: Any) -> Sequence[StoredEntry]:
        nonlocal reads
        reads += 1
        return await page(comm_id, **bounds)

    plane.log.read = counted  # type: ignore[method-assign]
    provenance = Provenance(plane.log)
    nobodys = TrackedFile.of(file.object_name, file.sha256, owner_of(AgentId("nobody")))
    provenance._room.names = 1_000_000  # as where others' requests take all the room
    with pytest.raises(RateLimitedError):
        await provenance.is_known(nobodys, rooms[-1])
    assert reads <= 3 * 5_000
