"""The in-memory control plane as its users see it."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager
from pathlib import Path

from ioa.adapters.input_files import put_data, read_inputs
from ioa.adapters.system_clock import RandomIds
from ioa.errors import NotFoundError
from ioa.group.events import GroupLaunched, Said
from ioa.group.requests import AnswerQuestion, CancelGroup, GetGroup, GroupSnapshot
from ioa.page_size import count_page
from ioa.ports.agent_directory import Roster, pages_of_agents
from ioa.ports.clock import IdSource
from ioa.ports.dead_letter_box import DeadLetterBox
from ioa.ports.goal_client import ALL_GOALS, MOST_LOOKED_AT, PAGE_BYTES, PAGE_GOALS, AnyGoal, GoalFilter, GoalList, GoalStatus
from ioa.ports.group_client import GroupList, GroupListener, listed_bytes, listed_group
from ioa.ports.group_log import StoredEntry
from ioa.protocol import subjects
from ioa.protocol.cards import AgentStatus
from ioa.protocol.codec import decode, encode
from ioa.protocol.files import (
    Announced,
    AskStored,
    FilePiece,
    GetUpload,
    PutPiece,
    PutStanding,
    PutUpload,
    Stored,
    StoredBytes,
    stream_in_pieces,
)
from ioa.protocol.goal_order import GoalOrder
from ioa.protocol.goals import Artifact, GoalRecord, GoalResult, ending_of
from ioa.protocol.ids import LOCAL, CommId, GoalId, GoalName, UserId, complete_goal, complete_id
from ioa.protocol.named_teams import GetTeam, ListTeams, NamedTeam, PutTeam, TeamReference, TeamRow
from ioa.protocol.registry import Agents, ListAgents, RemoveAgent
from ioa.protocol.retention import Prune, Pruned
from ioa.protocol.search import IndexStatus, Search, SearchResult
from ioa.protocol.team import TeamSpec
from ioa_testkit.memory_plane import MemoryControlPlane

_PAGE, _READ_BYTES = 200, 2_000_000


class MemorySystemClient:
    """The `SystemClient` of `LOCAL`, of a control plane in memory.

    False in this: it is never out of reach, and lists read everything there is. Goals are taken in only while the plane's `keep`
    runs.
    """

    def __init__(self, plane: MemoryControlPlane, ids: IdSource | None = None) -> None:
        self._plane = plane
        self._ids = ids or RandomIds()

    @property
    def dead_letters(self) -> DeadLetterBox:
        """What could not be processed."""
        return self._plane.dead_letters

    async def user(self) -> UserId:
        """Whose goals are launched here."""
        return LOCAL

    async def complete(self, order: GoalOrder, files: Sequence[Path] = ()) -> GoalOrder:
        """Give an order an id, and store the files."""
        goal_id = order.goal_id or GoalId(self._ids.new("goal"))
        stored = [
            await put_data(one.name, one.data, one.media_type, self._putting(goal_id, one.place))
            async for one in read_inputs(files)
        ]
        return order.model_copy(update={"goal_id": goal_id, "inputs": (*order.inputs, *stored)})

    async def launch(self, order: GoalOrder, files: Sequence[Path] = ()) -> GoalId:
        """Complete the order and publish it."""
        complete = await self.complete(order, files)
        assert complete.goal_id is not None, "a complete order has an id"
        subject = subjects.goal_to(LOCAL, order.agent) if order.agent else subjects.goal_of(LOCAL)
        await self._plane.publish(subject, complete.model_dump_json(exclude_none=True).encode())
        return complete.goal_id

    async def result(self, goal: AnyGoal) -> GoalResult | None:
        """Read a goal's result."""
        return await self._plane.results.get(_name(goal))

    async def wait_for_result(self, goal: AnyGoal) -> GoalResult:
        """Wait until the goal has ended."""
        name = _name(goal)
        await self._refuse_removed(name)
        news = asyncio.Event()
        with self._plane.results.listening(news.set):
            while (found := await self._plane.results.get(name)) is None:
                await news.wait()
                news.clear()
        return found

    async def cancel(self, request: CancelGroup, user: UserId | None = None) -> None:
        """Cancel a goal or a group."""
        await self._plane.setup.cancel(user or LOCAL, request)

    async def answer(self, request: AnswerQuestion, user: UserId | None = None) -> None:
        """Answer what a group asks."""
        await self._plane.setup.answer(user or LOCAL, request)

    async def goal(self, goal: AnyGoal, *, with_team: bool = True) -> GoalStatus:
        """Look at one goal."""
        name = _name(goal)
        record = await self._plane.goals.find(name.comm_id)
        if record is None:
            await self._refuse_removed(name)
            raise NotFoundError(f"There is no goal {name}.", hint="`ioa goals` lists them.")
        standing, result = await self._snapshot(name.comm_id), await self.result(name)
        if not with_team:
            record = decode(GoalRecord, encode(record))
            standing = None if standing is None else standing.model_copy(update={"charter": None})
        return GoalStatus(record, standing, result)

    async def waiting(self, goal: AnyGoal) -> int:
        """None wait: in memory every goal begins at once."""
        return 0

    async def goals(self, *, limit: int = PAGE_GOALS, before: int | None = None, only: GoalFilter = ALL_GOALS) -> GoalList:
        """List goals on record, newest first, a page at a time."""
        width = MOST_LOOKED_AT if only.leaves_out else limit
        page = await self._plane.pages.newest(before=before, limit=width, max_bytes=_READ_BYTES)
        rows, size = list[GoalStatus](), 0
        for one in page.records:
            row = await self._row(one.whole())
            if only.takes(one.record) and only.wants(row):
                rows.append(row)
                stored = (row.result, row.standing.state if row.standing else None)
                size += len(one.stored) + sum(len(encode(part)) for part in stored if part is not None)
                if (len(rows) == limit or size >= PAGE_BYTES) and (one is not page.records[-1] or page.before is not None):
                    return GoalList(rows, one.number, one.place)
        return GoalList(rows, page.before, page.looked_at)

    async def find_goal(self, start: str) -> GoalName:
        """Complete the id of a goal."""
        ended = await self._plane.ended.find(GoalName(LOCAL, GoalId(start)))
        if ended is not None:
            return ended.name
        return complete_goal(start, LOCAL, [record.goal.name for record in self._plane.goals.all()], complete=True)

    async def upload(
        self,
        name: str,
        data: bytes | AsyncIterable[bytes],
        *,
        media_type: str | None = None,
        goal_id: GoalId | None = None,
        place: str | None = None,
    ) -> Artifact:
        """Store a file of one's own."""
        return await put_data(name, data, media_type, self._putting(goal_id or GoalId(self._ids.new("upload")), place or name))

    async def stream(
        self, artifact: Artifact, *, start: int = 0, stop: int | None = None, told_in: CommId | None = None
    ) -> AsyncGenerator[bytes, None]:
        """Yield a file, or a part of it."""
        named = {"object_name": artifact.object_name, "sha256": artifact.sha256}

        async def get(after: int) -> FilePiece:
            return await self._plane.files.get_upload(GetUpload(user=LOCAL, after=after, told_in=told_in, **named))

        async with aclosing(stream_in_pieces(artifact, get, start=start, stop=stop)) as pieces:
            async for piece in pieces:
                yield piece

    async def fetch(self, artifact: Artifact) -> bytes:
        """Fetch a file a goal produced."""
        return b"".join([piece async for piece in self.stream(artifact)])

    async def stored(self) -> StoredBytes:
        """Ask whose files fill the store."""
        return await self._plane.files.stored(AskStored())

    def _putting(self, goal_id: GoalId, place: str) -> PutPiece:
        async def put(file: Announced, standing: PutStanding | None, piece: bytes) -> Stored:
            request = PutUpload(user=LOCAL, goal_id=goal_id, place=place, file=file, standing=standing, data=piece)
            return await self._plane.files.put_upload(request)

        return put

    async def group(self, comm_id: CommId) -> GroupSnapshot:
        """Look at one group."""
        return await self._plane.setup.get(GetGroup(comm_id=comm_id))

    async def groups(
        self, *, limit: int = PAGE_GOALS, before: int | None = None, open_only: bool = False, owner: UserId | None = None
    ) -> GroupList:
        """List the groups of goals on record, nested ones behind their parents."""
        page = await self._plane.pages.newest(before=before, limit=limit, max_bytes=_READ_BYTES)
        found, size, open_groups = list[GroupSnapshot](), 0, self._plane.open_groups.comm_ids()
        for one in page.records:
            goal = one.record.goal
            if owner in (None, goal.name.owner) and (goal.comm_id in open_groups or not open_only):
                tree = [listed_group(group) for group in await self._tree(goal.comm_id)]
                found += [group for group in tree if not (open_only and group.state.phase.is_terminal)]
                size += sum(map(listed_bytes, tree))
                if size >= PAGE_BYTES and (one is not page.records[-1] or page.before is not None):
                    return GroupList(found, one.number)
        return GroupList(found, page.before)

    async def find_group(self, start: str) -> CommId:
        """Complete the id of a group."""
        return CommId(complete_id("group", start, self._plane.log.comm_ids(), complete=True))

    async def entries(
        self, comm_id: CommId, *, after: int = 0, limit: int | None = None, max_bytes: int | None = None
    ) -> Sequence[StoredEntry]:
        """Read a group's log behind a sequence, in order."""
        if limit is None and max_bytes is None:
            return await self._read(comm_id, after=after)
        return await self._plane.log.read(comm_id, after=after, limit=sys.maxsize if limit is None else limit, max_bytes=max_bytes)

    async def entries_before(
        self, comm_id: CommId, *, before: int, limit: int, max_bytes: int | None = None
    ) -> Sequence[StoredEntry]:
        """Read the last entries of a group's log before a sequence."""
        found = [one for one in await self._read(comm_id, after=0) if one.seq < before]
        number = count_page((one.size_bytes for one in reversed(found)), max_bytes, limit)
        return found[len(found) - number :]

    async def heads(self, comm_ids: Sequence[CommId], *, at: int) -> Mapping[CommId, GroupSnapshot]:
        """Tell where each group stood at a sequence."""
        last = {comm_id: await self.entries_before(comm_id, before=at + 1, limit=1) for comm_id in comm_ids}
        return {
            comm_id: GroupSnapshot(seq=found[0].seq, state=found[0].entry.state, charter=None)
            for comm_id, found in last.items()
            if found
        }

    @asynccontextmanager
    async def listen(self, comm_id: CommId, listener: GroupListener) -> AsyncIterator[None]:
        """Listen to a group while the block runs."""

        def note(of: CommId) -> None:
            if of == comm_id:
                listener.hint()

        def hear(said: Said) -> None:
            if said.message.header.comm_id == comm_id:
                listener.report(said)

        with self._plane.log.listening(note), self._plane.progress.listening(hear):
            yield

    async def agents(self, *, online_only: bool = False) -> Sequence[AgentStatus]:
        """List all agents, by id."""
        return (await self.roster(online_only=online_only)).agents

    async def roster(self, *, online_only: bool = False) -> Roster:
        """List all agents, by id."""
        agents: list[AgentStatus] = []
        skipped: list[str] = []
        async with aclosing(pages_of_agents(self.list_agents, online_only=online_only)) as pages:
            async for page in pages:
                agents += page.agents
                skipped += page.unreadable
        return Roster(agents, skipped)

    async def list_agents(self, request: ListAgents) -> Agents:
        """Ask for one page of a list of agents."""
        return await self._plane.registry.list(request)

    async def search(self, search: Search) -> SearchResult:
        """Ask discovery."""
        return await self._plane.discovery.search(search)

    async def index_status(self) -> IndexStatus:
        """Ask how discovery's index stands."""
        return await self._plane.discovery.status()

    async def prune(self, request: Prune) -> Pruned:
        """Remove one part of the goals that ended long ago."""
        return await self._plane.retention.prune(request)

    async def remove_agent(self, request: RemoveAgent) -> None:
        """Forget an agent."""
        await self._plane.remove_agent(request)

    async def put_team(self, team: TeamSpec) -> NamedTeam:
        """Keep a team under its own name."""
        return await self._plane.teams.put(LOCAL, PutTeam(team=team))

    async def team(self, reference: TeamReference) -> NamedTeam:
        """Read a version of a team."""
        return await self._plane.teams.get(GetTeam(name=reference.name, version=reference.version))

    async def teams(self) -> Sequence[TeamRow]:
        """List all teams by name."""
        return (await self._plane.teams.listed(ListTeams())).teams

    async def _read(self, comm_id: CommId, *, after: int) -> list[StoredEntry]:
        entries: list[StoredEntry] = []
        while page := await self._plane.log.read(comm_id, after=entries[-1].seq if entries else after, limit=_PAGE):
            entries += page
        return entries

    async def _row(self, record: GoalRecord) -> GoalStatus:
        result = await self.result(record.goal.name)
        standing = None if result is not None else await self._snapshot(record.goal.comm_id)
        return GoalStatus(record, None if standing is None else standing.model_copy(update={"charter": None}), result)

    async def _tree(self, comm_id: CommId) -> list[GroupSnapshot]:
        standing = await self._snapshot(comm_id)
        if standing is None:
            return []
        return [standing, *[below for nested in standing.nested for below in await self._tree(nested)]]

    async def _snapshot(self, comm_id: CommId) -> GroupSnapshot | None:
        entries = await self._read(comm_id, after=0)
        if not entries:
            return None
        first, head = entries[0].entry.event, entries[-1]
        charter = first.charter if isinstance(first, GroupLaunched) else None
        return GroupSnapshot(seq=head.seq, state=head.entry.state, charter=charter)

    async def _refuse_removed(self, goal: GoalName) -> None:
        ending = ending_of(await self._plane.ended.find(goal))
        if ending is not None:
            raise NotFoundError(f"The goal {goal} has ended ({ending}) and was removed: nothing else is kept of it.")


def _name(goal: AnyGoal) -> GoalName:
    return goal if isinstance(goal, GoalName) else GoalName(LOCAL, goal)
