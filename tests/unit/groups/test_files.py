"""Files behind the service: who may read, who may write, and how much."""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Callable
from datetime import timedelta

import pytest
from structlog.testing import capture_logs

from ioa.adapters.nats.streams.topology import Shares
from ioa.concurrency import beside
from ioa.errors import (
    NotFoundError,
    OverQuotaError,
    PayloadTooLargeError,
)
from ioa.group.requests import Sync
from ioa.protocol.goals import Announced, Artifact
from ioa.protocol.ids import LOCAL, AgentId, CommId, GoalName, TaskId, UserId
from ioa.protocol.messages import (
    Conclusion,
    Discussion,
    InformTaskResult,
    SyncTaskAssignment,
    TaskSpec,
)
from ioa.protocol.setup.file_requests import (
    PIECE_BYTES,
    AskStored,
    FilePiece,
    GetFile,
    PutFile,
    PutStanding,
    PutUpload,
    Stored,
    put_in_pieces,
    stream_in_pieces,
    whole,
)
from ioa.protocol.teams.stored_teams import PutTeam
from ioa.protocol.teams.team_file import team_of
from ioa_groups.group_files import INTERRUPTED_AFTER
from ioa_groups.parts import GroupParts
from tests.rig.deadline import eventually
from tests.unit.runtime.plane import ADA, BOB, EVE, GOAL, ROOM, SETTINGS, Plane

PLACE = "t1-1/chart.svg"
ANNA = UserId("anna")
TWO_PIECES = b"x" * (PIECE_BYTES + 100)


def putting(
    plane: Plane, agent_id: AgentId, comm_id: CommId = ROOM, place: str = PLACE
) -> Callable[[Announced, PutStanding | None, bytes], Awaitable[Stored]]:
    """How an agent puts pieces."""

    async def put(file: Announced, standing: PutStanding | None, data: bytes) -> Stored:
        return await plane.files.put(
            PutFile(agent_id=agent_id, comm_id=comm_id, place=place, file=file, standing=standing, data=data)
        )

    return put


async def put(plane: Plane, agent_id: AgentId, data: bytes = b"chart", place: str = PLACE) -> Artifact:
    """Put a whole file."""
    return await put_in_pieces("chart.svg", data, "image/svg+xml", putting(plane, agent_id, place=place))


async def upload(plane: Plane, data: bytes, place: str = "0/a") -> Artifact:
    """Put a user's file."""

    async def one(file: Announced, standing: PutStanding | None, piece: bytes) -> Stored:
        return await plane.files.put_upload(ANNA, PutUpload(goal_id=GOAL, place=place, file=file, standing=standing, data=piece))

    return await put_in_pieces("a", data, "text/plain", one)


async def read(plane: Plane, file: Artifact) -> bytes:
    """Read a whole file by its reference."""

    async def get(after: int) -> FilePiece:
        return await plane.files.get(GetFile(object_name=file.object_name, sha256=file.sha256, after=after))

    return await whole(stream_in_pieces(file, get))


def announced(data: bytes, size: int | None = None) -> Announced:
    """A file that is about to be put."""
    return Announced(name="a", size_bytes=len(data) if size is None else size, sha256=hashlib.sha256(data).hexdigest())


@pytest.fixture
async def plane() -> Plane:
    """Ada's group with bob, who has a task; eve is in none."""
    made = Plane()
    await made.open(ADA, BOB)
    await made.says(ADA, SyncTaskAssignment(tasks=(TaskSpec(task_id=TaskId("t1-1"), assignee=BOB, task_desc="Draw."),)))
    return made


async def test_repeated_upload_has_the_same_name_on_each_replica() -> None:
    """The name follows from the key of group setup, the owner and the place; another tenant has another key."""
    plane, replica, tenant = Plane(), Plane(), Plane()
    tenant.tickets.key = b"another"
    for one in (plane, replica, tenant):
        await one.open(ADA, BOB)
    first, again, other = await put(plane, BOB), await put(replica, BOB), await put(tenant, BOB)
    assert first == again == await put(plane, BOB)
    assert first.object_name != other.object_name
    with pytest.raises(NotFoundError):
        await read(plane, other)


async def test_equal_place_or_content_of_another_owner_is_another_file(plane: Plane) -> None:
    """An upload reveals and replaces no file of another agent, user or goal, also where joined names would be equal."""
    files = [await put(plane, BOB, b"a"), await put(plane, ADA, b"a"), await upload(plane, b"a", PLACE)]
    files += [await plane.files.keep(GoalName(ANNA, GOAL), at, "a", b"a", "text/plain") for at in (0, 1)]
    joined = [("a", "b/c"), ("a/b", "c"), ("", "a/b/c")]
    names = [await plane.files._object_name(owner, place) for owner, place in joined]
    assert len({one.object_name for one in files} | set(names)) == len(files) + len(names)


async def test_hidden_result_shows_no_reference_to_other_members() -> None:
    """A member that a policy does not show a task receives no name of its files, in no entry and at no end of the group."""
    zoe, plane = AgentId("zoe"), Plane()
    team = team_of(
        {
            "team": "panel",
            "leader": "chair",
            "roles": {"chair": EVE, "chief": BOB, "clerk": zoe},
            "nodes": [
                {
                    "name": "plan",
                    "roles": ["chief"],
                    "heard_by": ["chief", "clerk"],
                    "max": 9,
                    "tasks": True,
                    "exits": [{"to": "end", "by": "speaker"}],
                }
            ],
        }
    )
    await plane.teams.put(LOCAL, PutTeam(team=team))
    await plane.open(ADA, BOB, EVE, zoe, max_turns=60)
    task = TaskSpec(task_id=TaskId("t1-1"), assignee=EVE, task_desc="Judge it.", team="panel")
    await plane.says(ADA, SyncTaskAssignment(tasks=(task,)))
    nested = (await plane.nest("t1-1", EVE)).comm_id
    inner = TaskSpec(task_id=TaskId(f"t{(await plane.state(nested)).turn}-a"), assignee=zoe, task_desc="Write.")
    await plane.says(BOB, SyncTaskAssignment(tasks=(inner,)), comm_id=nested)
    file = await put_in_pieces("a.txt", b"of chief and clerk", "text/plain", putting(plane, zoe, nested))
    await plane.says(zoe, InformTaskResult(task_id=inner.task_id, task_conclusion="Done.", artifacts=(file,)), comm_id=nested)
    await plane.says(BOB, Discussion(content="That is all.", go="end"), comm_id=nested)
    await plane.says(EVE, Conclusion(content="Done."), comm_id=nested)
    shown = {
        who: "".join(
            [one.entry.model_dump_json() for one in (await plane.log_pages.sync(Sync(comm_id=comm_id, agent_id=who))).entries]
        )
        for who, comm_id in ((BOB, nested), (zoe, nested), (EVE, nested), (ADA, ROOM))
    }
    assert {who for who, text in shown.items() if file.object_name in text or file.sha256 in text} == {BOB, zoe}


async def test_logs_contain_no_object_names(plane: Plane) -> None:
    """An interrupted upload is logged without its name, by which a repeated upload is read."""
    await putting(plane, BOB)(announced(TWO_PIECES), None, TWO_PIECES[:PIECE_BYTES])
    plane.clock.advance(INTERRUPTED_AFTER + timedelta(seconds=1))
    with capture_logs() as logs:
        async with beside(plane.files.sweep()):
            await eventually(lambda: next((one for one in logs if one["event"] == "uploads_dropped"), None))
    assert (await put(plane, BOB)).object_name.partition("/")[2] not in str(logs)


async def test_an_owner_has_so_much_room(plane: Plane) -> None:
    """Uploads that are not complete count with their whole size; who is over is told, others have room, and removing makes some."""
    kept = await put(plane, BOB, b"1" * PIECE_BYTES, "1")
    for name in ("2", "3", "4", "5"):
        await putting(plane, BOB, place=name)(announced(TWO_PIECES), None, TWO_PIECES[:PIECE_BYTES])
    with pytest.raises(OverQuotaError, match="agent-bob stores"):
        await put(plane, BOB, b"6" * PIECE_BYTES, "6")
    with pytest.raises(PayloadTooLargeError):
        await putting(plane, BOB)(announced(b"", 3_000_001), None, b"")
    await put(plane, ADA, b"6" * PIECE_BYTES, "6")
    await plane.artifacts.remove(kept.object_name)
    await put(plane, BOB, b"6" * PIECE_BYTES, "6")
    told = await plane.files.stored(AskStored())
    assert [(one.owner, one.files) for one in told.owners] == [("agent-bob", 5), ("agent-ada", 1)]


async def test_an_owner_stores_so_many_files(plane: Plane, monkeypatch: pytest.MonkeyPatch) -> None:
    """However small: all that are there are listed whenever they are counted. Another's are not his."""
    monkeypatch.setattr("ioa_groups.group_files._MAX_FILES", 3)
    for number in range(3):
        await put(plane, BOB, str(number).encode(), str(number))
    with pytest.raises(OverQuotaError, match="in 3 of 3 files"):
        await put(plane, BOB, b"3", "3")
    await put(plane, ADA, b"4", "4")


def test_no_one_fills_the_whole_store() -> None:
    """Of what all may store together half stays for others, however much one may store by the settings."""
    settings, shares = SETTINGS.model_copy(update={"user_files_bytes": 1_000}), Shares(25_000_000)
    files = GroupParts(Plane().ports, settings.model_copy(update={"agent_files_bytes": 256_000_000}), shares).files
    assert (files._agent_bytes, files._user_bytes) == (5_000_000, 1_000)
