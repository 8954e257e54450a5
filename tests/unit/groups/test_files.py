"""Files behind the service: who may read, who may write, and how much."""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Callable
from datetime import timedelta

import pytest

from ioa.agent.history import GroupHistory
from ioa.errors import (
    ConflictError,
    ForbiddenError,
    InvalidInputError,
    IoaError,
    NotFoundError,
    OverQuotaError,
    PayloadTooLargeError,
)
from ioa.group.events import SubgroupClosed
from ioa.group.requests import CancelGroup, LaunchGroup, Sync
from ioa.group.state import ParentTask
from ioa.protocol.files import (
    PIECE_BYTES,
    Announced,
    AskStored,
    FilePiece,
    GetFile,
    GetUpload,
    PutFile,
    PutStanding,
    PutUpload,
    Stored,
    put_in_pieces,
    stream_in_pieces,
    whole,
)
from ioa.protocol.goals import Artifact
from ioa.protocol.ids import LOCAL, AgentId, CommId, GoalId, GoalName, TaskId, UserId, comm_id_of_goal
from ioa.protocol.messages import (
    AsyncTaskAssignment,
    ConcludeGroupDiscussion,
    Conclusion,
    Discussion,
    InformTaskResult,
    SyncTaskAssignment,
    TaskSpec,
)
from ioa.protocol.named_teams import PutTeam
from ioa.protocol.object_names import folder_of
from ioa.protocol.team import team_of
from ioa.protocol.tickets import ticket_of
from ioa_groups.files import INTERRUPTED_AFTER, FileQuotas
from tests.rig.memory_goals import MemoryTickets
from tests.unit.runtime.plane import ADA, BOB, EVE, GOAL, ROOM, Plane

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
        return await plane.files.put_upload(
            PutUpload(user=ANNA, goal_id=GOAL, place=place, file=file, standing=standing, data=piece)
        )

    return await put_in_pieces("a", data, "text/plain", one)


async def read(plane: Plane, agent_id: AgentId, seq: int, file: Artifact, comm_id: CommId = ROOM) -> bytes:
    """Read a whole file."""

    async def get(after: int) -> FilePiece:
        named = {"object_name": file.object_name, "sha256": file.sha256}
        return await plane.files.get(GetFile(agent_id=agent_id, comm_id=comm_id, seq=seq, after=after, **named))

    return await whole(stream_in_pieces(file, get))


async def fetch(plane: Plane, file: Artifact, told_in: CommId | None = None) -> bytes:
    """Read a whole file as a user."""

    async def get(after: int) -> FilePiece:
        named = {"object_name": file.object_name, "sha256": file.sha256, "told_in": told_in}
        return await plane.files.get_upload(GetUpload(user=ANNA, after=after, **named))

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


async def reported(plane: Plane, file: Artifact) -> int:
    """Bob reports his task with a file; returns the entry's sequence."""
    await plane.says(BOB, InformTaskResult(task_id=TaskId("t1-1"), task_conclusion="Done.", artifacts=(file,)))
    return (await plane.entries())[-1].seq


async def test_what_an_entry_tells_is_read_by_those_whom_it_told(plane: Plane) -> None:
    """A member reads a file by the entry that brought it; nobody else, by no other entry, and no other file."""
    file = await put(plane, BOB, TWO_PIECES)
    seq = await reported(plane, file)
    assert await read(plane, ADA, seq, file) == TWO_PIECES
    forged = file.model_copy(update={"sha256": "0" * 64})
    for who, where, what in ((EVE, seq, file), (ADA, seq - 1, file), (ADA, seq + 1, file), (ADA, seq, forged)):
        with pytest.raises(NotFoundError, match="has told"):
            await read(plane, who, where, what)
    with pytest.raises(NotFoundError, match="has told"):
        await read(plane, ADA, seq, file, CommId("elsewhere"))


async def test_a_file_is_read_whoever_names_it_first() -> None:
    """Nobody keeps a member's file from its readers by naming it before its author does, who is asked for it by a true entry."""
    plane = Plane()
    await plane.open(ADA, BOB, EVE)
    given = [
        TaskSpec(task_id=TaskId(name), assignee=who, task_desc=f"Draw {name}.") for name, who in (("t1-1", BOB), ("t1-2", EVE))
    ]
    await plane.says(ADA, SyncTaskAssignment(tasks=(*given,)))
    file = await put(plane, BOB)
    await plane.says(EVE, InformTaskResult(task_id=TaskId("t1-2"), task_conclusion="Mine.", artifacts=(file,)))
    await reported(plane, file)
    await plane.says(ADA, ConcludeGroupDiscussion())
    history = GroupHistory(ROOM)
    for entry in (await plane.log_pages.sync(Sync(comm_id=ROOM, agent_id=ADA))).entries:
        history.apply(entry)
    assert await read(plane, ADA, history.told[file.object_name, file.sha256], file) == b"chart"
    await plane.says(ADA, Conclusion(content="Done.", artifacts=(file,)))
    for entry in (await plane.log_pages.sync(Sync(comm_id=ROOM, agent_id=ADA, after=history.cursor))).entries:
        history.apply(entry)
    assert await read(plane, ADA, history.told[file.object_name, file.sha256], file) == b"chart"


async def test_an_entry_cannot_make_a_file_ones_own(plane: Plane) -> None:
    """Who makes up a reference, without the digest of what is stored, is told of nothing by it."""
    secret = await upload(plane, b"secret")
    made_up = secret.model_copy(update={"sha256": hashlib.sha256(b"guess").hexdigest()})
    seq = await reported(plane, made_up)
    with pytest.raises(NotFoundError, match="stored no more"):
        await read(plane, ADA, seq, made_up)


async def test_a_reference_that_was_never_told_opens_nothing(plane: Plane) -> None:
    """Who learned elsewhere what a file is called and holds has it told neither to itself nor to an accomplice by naming it."""
    secret = await upload(plane, b"secret")
    seq = await reported(plane, secret)
    for who in (BOB, ADA):
        with pytest.raises(NotFoundError, match="has told"):
            await read(plane, who, seq, secret)


async def test_users_name_a_group_that_has_to_know_a_file(plane: Plane) -> None:
    """A true reference opens a file by a group in which its author told of it, and by no other, nor where it is only named."""
    file, secret = await put(plane, BOB), await upload(plane, b"secret")
    await plane.says(BOB, InformTaskResult(task_id=TaskId("t1-1"), task_conclusion="Done.", artifacts=(file, secret)))
    assert await fetch(plane, file, ROOM) == b"chart"
    for wanted, where in ((secret, ROOM), (file, CommId("elsewhere"))):
        with pytest.raises(NotFoundError, match="rightly told"):
            await fetch(plane, wanted, where)


async def test_what_was_told_is_handed_on(plane: Plane) -> None:
    """A conclusion with the file of another's result opens it to all who hear it, as does an entry with a file of its sender."""
    file = await put(plane, BOB)
    await reported(plane, file)
    own = await put(plane, ADA, b"own", "own")
    await plane.says(ADA, ConcludeGroupDiscussion())
    await plane.says(ADA, Conclusion(content="Done.", artifacts=(file, own)))
    seq = (await plane.entries())[-1].seq
    assert [await read(plane, who, seq, one) for who in (ADA, BOB) for one in (file, own)] == [b"chart", b"own"] * 2


async def test_the_author_of_a_file_is_not_made_to_hand_it_on_elsewhere() -> None:
    """Its client fetches what a task is to use, and repeats in conclusions and for nested teams what a stranger's result names."""
    plane, goal_id, mal = Plane(), GoalId("mine"), AgentId("mal")
    room = comm_id_of_goal(goal_id)
    await plane.open(ADA, BOB)
    secret = await put(plane, BOB, b"secret")
    await plane.says(ADA, SyncTaskAssignment(tasks=(TaskSpec(task_id=TaskId("t1-1"), assignee=BOB, task_desc="Draw."),)))
    told = await reported(plane, secret)
    await plane.join(EVE, mal)
    await plane.accept(goal_id)
    ticket = ticket_of(MemoryTickets.key, GoalName(LOCAL, goal_id))
    await plane.setup.launch(LaunchGroup(owner=BOB, members=(mal, EVE), goal_id=goal_id, ticket=ticket))
    tasks = [TaskSpec(task_id=TaskId(name), assignee=who, task_desc=f"Do {name}.") for name, who in (("t1-1", mal), ("t1-2", BOB))]
    await plane.says(BOB, AsyncTaskAssignment(tasks=(*tasks,)), comm_id=room)
    await plane.says(mal, InformTaskResult(task_id=TaskId("t1-1"), task_conclusion="x", artifacts=(secret,)), comm_id=room)
    by_stranger = (await plane.entries(room))[-1].seq
    parent = ParentTask(comm_id=room, task_id=TaskId("t1-2"))
    request = LaunchGroup(owner=BOB, members=(mal,), goal_id=goal_id, parent=parent, goal="Count.", inputs=(secret,))
    nested = (await plane.setup.launch(request)).state.comm_id
    await plane.says(BOB, ConcludeGroupDiscussion(), comm_id=room)
    await plane.says(BOB, Conclusion(content="Done.", artifacts=(secret,)), comm_id=room)
    ways = [(by_stranger, room), ((await plane.entries(nested))[0].seq, nested), ((await plane.entries(room))[-1].seq, room)]
    for seq, where in ways:
        for who in (BOB, mal):
            with pytest.raises(NotFoundError, match="has told"):
                await read(plane, who, seq, secret, where)
    with pytest.raises(NotFoundError, match="rightly told"):
        await fetch(plane, secret, room)
    assert [await read(plane, who, told, secret) for who in (ADA, BOB)] == [b"secret"] * 2


@pytest.mark.parametrize("is_known", [True, False])
async def test_a_nested_team_hands_on_what_its_members_know(plane: Plane, is_known: bool) -> None:
    """What a nested team is given, and what it concludes with, opens only what was rightly told on the way there."""
    await plane.join(EVE)
    file = await put(plane, BOB if is_known else ADA, b"a file", "a")
    parent = ParentTask(comm_id=ROOM, task_id=TaskId("t1-1"))
    request = LaunchGroup(owner=BOB, members=(EVE,), goal_id=GOAL, parent=parent, goal="Count.", inputs=(file,))
    nested = (await plane.setup.launch(request)).state.comm_id
    given = (await plane.entries(nested))[0].seq
    await plane.says(BOB, ConcludeGroupDiscussion(), comm_id=nested)
    await plane.says(BOB, Conclusion(content="Done.", artifacts=(file,)), comm_id=nested)
    concluded = (await plane.entries(nested))[-1].seq
    closed = next(one.seq for one in await plane.entries() if isinstance(one.entry.event, SubgroupClosed))
    for who, seq, where in ((EVE, given, nested), (EVE, concluded, nested), (BOB, closed, ROOM)):
        if is_known:
            assert await read(plane, who, seq, file, where) == b"a file"
        else:
            with pytest.raises(NotFoundError, match="has told"):
                await read(plane, who, seq, file, where)


@pytest.mark.parametrize("is_told", [True, False])
async def test_a_nested_teams_end_opens_what_its_leader_was_told_of(*, is_told: bool) -> None:
    """That others in the team know of a file opens it to nobody by the end that its leader has put it into."""
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
                    "heard_by": ["chief", "clerk", *(["chair"] if is_told else [])],
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
    result = InformTaskResult(task_id=inner.task_id, task_conclusion="Done.", artifacts=(file,))
    await plane.says(zoe, result, comm_id=nested)
    told = (await plane.entries(nested))[-1].seq
    await plane.says(BOB, Discussion(content="That is all.", go="end"), comm_id=nested)
    await plane.says(EVE, Conclusion(content="Done.", artifacts=(file,)), comm_id=nested)
    closed = next(one.seq for one in await plane.entries() if isinstance(one.entry.event, SubgroupClosed))
    assert await read(plane, BOB, told, file, nested) == b"of chief and clerk"
    for who in (ADA, EVE):
        if is_told:
            assert await read(plane, who, closed, file) == b"of chief and clerk"
        else:
            with pytest.raises(NotFoundError, match="has told"):
                await read(plane, who, closed, file)


async def test_only_members_put_files_into_an_open_group(plane: Plane) -> None:
    """A stranger learns no more than that it is in no such group, and nothing is put where all is over."""
    for comm_id in (ROOM, CommId("elsewhere")):
        with pytest.raises(NotFoundError, match="eve is in no group"):
            await put_in_pieces("a", b"a", "text/plain", putting(plane, EVE, comm_id))
    await plane.setup.cancel(LOCAL, CancelGroup(comm_id=ROOM))
    with pytest.raises(ConflictError, match="has ended"):
        await put(plane, BOB)


async def test_what_is_stored_never_changes(plane: Plane) -> None:
    """The same file again is the same file, without its bytes; another one in its place is refused; members have places apart."""
    first = await put(plane, BOB)
    assert (await put(plane, BOB), (await put(plane, ADA, b"other")).object_name != first.object_name) == (first, True)
    with pytest.raises(ConflictError, match="never changes"):
        await put(plane, BOB, b"other")
    assert await plane.artifacts.get(first) == b"chart"


async def test_no_more_is_taken_than_was_announced(plane: Plane) -> None:
    """A piece too long, too short, or behind the end is refused, and nothing of it can be read."""
    one = putting(plane, BOB)
    for data, size in ((b"12345", 4), (b"1234", 5), (b"", 1), (TWO_PIECES, len(TWO_PIECES))):
        with pytest.raises(InvalidInputError, match="does not fit"):
            await one(announced(data, size), None, data)
    assert plane.artifacts.stored() == []


async def test_nobody_goes_on_with_anothers_upload(plane: Plane) -> None:
    """Where a put stands is group setup's word: it holds for that writer, that file and that place, as it was said."""
    file = announced(TWO_PIECES)
    standing = (await putting(plane, BOB)(file, None, TWO_PIECES[:PIECE_BYTES])).standing
    assert standing is not None
    rest = TWO_PIECES[PIECE_BYTES:]
    others = (
        (putting(plane, ADA), file, standing),
        (putting(plane, BOB, place="t1-1/b"), file, standing),
        (putting(plane, BOB), file.model_copy(update={"sha256": "0" * 64}), standing),
        (putting(plane, BOB), file, standing.model_copy(update={"seq": 0})),
        (putting(plane, BOB), file, standing.model_copy(update={"seal": "é" * 64})),
    )
    for go_on, what, where in others:
        with pytest.raises(ForbiddenError):
            await go_on(what, where, rest)
    stored = await putting(plane, BOB)(file, standing, rest)
    assert stored.artifact is not None and await plane.artifacts.get(stored.artifact) == TWO_PIECES


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
    monkeypatch.setattr("ioa_groups.files._MOST_FILES", 3)
    for number in range(3):
        await put(plane, BOB, str(number).encode(), str(number))
    with pytest.raises(OverQuotaError, match="in 3 of 3 files"):
        await put(plane, BOB, b"3", "3")
    plane.clock.advance(timedelta(minutes=1))
    with pytest.raises(OverQuotaError, match="in 3 of 3 files"):
        await put(plane, BOB, b"3", "3")
    await put(plane, ADA, b"4", "4")


async def test_a_user_has_so_much_room(plane: Plane) -> None:
    """Files that users send with goals are counted as theirs."""
    for name in range(7):
        stored = await upload(plane, b"x" * PIECE_BYTES, str(name))
    assert stored.object_name.startswith(f"{folder_of(GoalName(ANNA, GOAL).key)}/"), "it goes with the goal"
    with pytest.raises(OverQuotaError, match="user-anna stores"):
        await upload(plane, b"x" * PIECE_BYTES, "7")


async def test_interrupted_uploads_make_room(plane: Plane) -> None:
    """What nobody goes on with is removed after a while."""
    await putting(plane, BOB)(announced(TWO_PIECES), None, TWO_PIECES[:PIECE_BYTES])
    plane.clock.advance(INTERRUPTED_AFTER + timedelta(seconds=1))
    await plane.artifacts.drop_interrupted(plane.clock.now() - INTERRUPTED_AFTER)
    assert await plane.files.stored(AskStored()) == await Plane().files.stored(AskStored())


@pytest.mark.parametrize(
    ("update", "error"),
    [({"sha256": "0" * 64}, NotFoundError), ({"object_name": "nowhere"}, NotFoundError), ({"size_bytes": 4}, InvalidInputError)],
)
async def test_users_read_by_a_true_reference(plane: Plane, update: dict[str, object], error: type[IoaError]) -> None:
    """The digest of what is stored opens it, and a reference that says something else is refused."""
    file = await put(plane, BOB)
    assert await fetch(plane, file) == b"chart"
    with pytest.raises(error):
        await fetch(plane, file.model_copy(update=update))


def test_no_one_fills_the_whole_store() -> None:
    """Of what all may store together half stays for others, however much one may store by the settings."""
    quotas = FileQuotas(agent_bytes=256_000_000, user_bytes=1_000)
    assert quotas.within(10_000_000, 6_000_000) == FileQuotas(agent_bytes=5_000_000, user_bytes=1_000)


async def test_file_of_a_lost_log_is_not_readable(plane: Plane) -> None:
    """A restored server reuses sequence numbers, so the cached permission of the lost log is invalid."""
    file = await put(plane, BOB)
    seq = await reported(plane, file)
    assert await read(plane, ADA, seq, file) == b"chart"
    plane.log.lose()
    plane.files.forget()
    with pytest.raises(NotFoundError, match="has told"):
        await read(plane, ADA, seq, file)
