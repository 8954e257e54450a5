"""The system as its users see it, over NATS: launching goals, following them, looking at groups and agents."""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager, suppress
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial
from pathlib import Path

import structlog
from nats.aio.client import Client
from nats.js.errors import APIError

from ioa.adapters.input_files import put_data, read_inputs
from ioa.adapters.nats.auth.identity import RequestCaller, ask_caller, user_of
from ioa.adapters.nats.requests.request import FILE_TIMEOUT, NOT_PERMITTED_HINT, SEARCH_TIMEOUT, NatsRequester, Reply
from ioa.adapters.nats.stores.dead_letters import NatsDeadLetterBox
from ioa.adapters.nats.streams.follow import listening, open_attention
from ioa.adapters.nats.streams.group_log import decoded_entry
from ioa.adapters.nats.streams.stream_stats import read_standing
from ioa.adapters.nats.streams.topology import GOALS, intake_consumer
from ioa.adapters.nats.wire.connection import NatsSettings, may_not_publish, open_connection, until_refused
from ioa.adapters.nats.wire.translated_errors import unavailable_unless_answered
from ioa.adapters.system_clock import RandomIds
from ioa.errors import (
    ForbiddenError,
    InvalidInputError,
    NotFoundError,
    NotPermittedError,
    RateLimitedError,
    UnavailableError,
)
from ioa.group.events import Entry, GroupLaunched
from ioa.group.goal_lists import ALL_GOALS, PAGE_GOALS, AnyGoal, GoalFilter, GoalList, GoalStatus, GroupList
from ioa.group.requests import AnswerQuestion, CancelGroup, GroupSnapshot
from ioa.ports.group_listener import GroupListener
from ioa.ports.group_log import StoredEntry
from ioa.protocol import subjects
from ioa.protocol.cards import AgentStatus
from ioa.protocol.codec import decode
from ioa.protocol.files import (
    Announced,
    AskStored,
    FilePiece,
    GetFile,
    PutPiece,
    PutStanding,
    PutUpload,
    Stored,
    StoredBytes,
    stream_in_pieces,
)
from ioa.protocol.goal_order import GoalOrder
from ioa.protocol.goals import MAX_INPUTS, Artifact, GoalRecord, GoalResult
from ioa.protocol.ids import ADMIN, LOCAL, AgentId, CommId, GoalId, GoalName, PoolId, UserId
from ioa.protocol.labels import PROBE
from ioa.protocol.model import Model
from ioa.protocol.named_teams import GetTeam, ListTeams, NamedTeam, PutTeam, TeamList, TeamReference, TeamRow
from ioa.protocol.reads import (
    MAX_GROUPS_READ,
    MAX_LISTED,
    MAX_PAGE_BYTES,
    MAX_PAGE_ENTRIES,
    DeadPage,
    GetGoal,
    GoalFound,
    GoalPart,
    GoalReader,
    GroupPage,
    ListedGoals,
    ListGoals,
    ListGroups,
    LogPage,
    ReadLog,
)
from ioa.protocol.registry import Acknowledged, Agents, GetAgents, ListAgents, RemoveAgent
from ioa.protocol.results import decode_result
from ioa.protocol.retention import Prune, Pruned
from ioa.protocol.search import AskIndexStatus, IndexStatus, Search, SearchResult
from ioa.protocol.standing import AskStoreStanding, StoreStanding
from ioa.protocol.team import TeamSpec

_TOO_MANY = "maximum messages per subject"
"""What JetStream says of a goal for which there is no room; the error's code says only that it was not stored."""
_MANY_END = timedelta(minutes=1)
ADMIN_HINT = "An admin's is made by `ioa credentials create --admin NAME`; IOA_NATS_SEED names its seed."
_PRUNE_TIMEOUT = timedelta(seconds=30)

_log = structlog.get_logger(__name__)


_AGENTS_PAGE = 200


@dataclass(frozen=True)
class Roster:
    """All agents, by id, and for each agent that cannot be listed its place and the reason."""

    agents: Sequence[AgentStatus]
    skipped: Sequence[str]


async def pages_of_agents(
    list_agents: Callable[[ListAgents], Awaitable[Agents]], *, online_only: bool = False
) -> AsyncGenerator[Agents, None]:
    """Yield all agents, by id, a page at a time."""
    after: AgentId | None = None
    while True:
        page = await list_agents(ListAgents(online_only=online_only, after=after, limit=_AGENTS_PAGE))
        yield page
        if not page.agents or not page.more:
            return
        after = page.agents[-1].card.agent_id


class NatsSystemClient:
    """The system as its users see it, over one connection. Made by `open_system`.

    Args:
        client: The connection.
        user: The user whose goals are launched, if the credential is for several users. None: the credential's user.
        reader: The name under which the goals of all users are read, if the credential permits that.
    """

    def __init__(self, client: Client, user: UserId | None = None, *, reader: str | None = None) -> None:
        self._client = client
        self._known = None if user is None else RequestCaller("user", user)
        self._reader_name = reader
        self._js = client.jetstream()
        self._requester = NatsRequester(client)
        self._dead_letters = NatsDeadLetterBox(client, partial(self._read, subjects.DEAD_PAGE, reply=DeadPage))

    @property
    def dead_letters(self) -> NatsDeadLetterBox:
        """Messages that could not be processed."""
        return self._dead_letters

    async def user(self) -> UserId:
        """Return the user whose goals are launched here; the server reports it, once.

        Raises:
            ForbiddenError: The credential launches no goals.
            UnavailableError: The server does not answer.
        """
        return user_of(await self._caller())

    async def _caller(self) -> RequestCaller:
        if self._known is None:
            self._known = await ask_caller(self._client)
        return self._known

    async def _subject(self, request: str) -> str:
        """Return the subject of a status request in the caller's role.

        Raises:
            NotPermittedError: The role may not send it.
        """
        try:
            caller = await self._caller()
        except ForbiddenError:
            caller = None
        if caller is None or caller.role == "auditor":
            raise NotPermittedError(f"This credential may not request {request}.", hint=NOT_PERMITTED_HINT)
        return caller.subject(request)

    async def _reader(self) -> GoalReader:
        """Return as whom this client reads: as a reader of all goals, or as a user.

        Raises:
            ForbiddenError: The credential reads no goals.
        """
        if self._reader_name is not None:
            return GoalReader(UserId(self._reader_name), reads_all=True)
        user = await self.user()
        return GoalReader(user, user in (ADMIN, LOCAL))

    async def _read(self, request: str, asked: Model, reply: type[Reply]) -> Reply:
        reader = await self._reader()
        subject = subjects.reader(reader.user, request) if reader.reads_all else subjects.user(reader.user, request)
        return await self._requester.request(subject, asked, reply, is_repeatable=True)

    async def _documents(self, name: GoalName, *parts: GoalPart) -> tuple[Mapping[GoalPart, bytes], str]:
        """Read stored documents of a goal, and how it ended if it was removed.

        Raises:
            NotFoundError: It is another user's goal.
        """
        found, left, removed = dict[GoalPart, bytes](), parts, ""
        while left:
            page = await self._read(subjects.GOALS_GET, GetGoal(user=name.user, goal_id=name.goal_id, parts=left), GoalFound)
            found |= zip(page.parts, page.split(page.sizes), strict=True)
            left, removed = page.left_out, removed or page.removed
        return found, removed

    async def complete(self, order: GoalOrder, files: Sequence[Path] = ()) -> GoalOrder:
        """Give an order an id, unless it has one, and store the files that belong to it.

        Raises:
            InvalidInputError: A file cannot be read, two have the same name, or there are too many.
            NotFoundError: No agent or pool of the name that leads the goal was ever registered.
            UnavailableError: The system does not take it.
        """
        if (count := len(order.inputs) + len(files)) > MAX_INPUTS:
            raise InvalidInputError(
                f"The goal has {count:,} input files; at most {MAX_INPUTS} are allowed.", hint="Pack them into an archive."
            )
        if order.agent is not None and PROBE not in order.labels:  # the probe of the doctor must find no agent
            await self._check_registered(order.agent)
        goal_id = order.goal_id or GoalId(RandomIds().new("goal"))
        stored = [
            await put_data(one.name, one.data, one.media_type, await self._putting(goal_id, one.place))
            async for one in read_inputs(files)
        ]
        return order.model_copy(update={"goal_id": goal_id, "inputs": (*order.inputs, *stored)})

    async def _check_registered(self, name: AgentId) -> None:
        """Check that an agent or a pool has this name, online or not. If the registry does not answer, intake decides."""
        with suppress(UnavailableError):
            found = await self._requester.request(await self._subject(subjects.GET_AGENTS), GetAgents(agent_ids=(name,)), Agents)
            if not (found.agents or found.left_out):
                found = await self.list_agents(ListAgents(pool=PoolId(name), limit=1))
            if not (found.agents or found.left_out):
                raise NotFoundError(f"No agent or pool {name!r} has ever registered.", hint="`ioa agents` lists all agents.")

    async def launch(self, order: GoalOrder, files: Sequence[Path] = ()) -> GoalId:
        """Complete the order and publish it; returns when it is stored. Launching it again under its id is the same goal.

        Raises:
            InvalidInputError: A file cannot be read, or two have the same name.
            RateLimitedError: As many goals of this user wait already as may.
            StoreFullError: The store is full and accepts no new goals.
            UnavailableError: The system does not take it.
        """
        user, complete = await self.user(), await self.complete(order, files)
        assert complete.goal_id is not None, "a complete order has an id"
        subject = subjects.goal_to(user, order.agent) if order.agent else subjects.goal_of(user)
        await self._publish_goal(user, subject, complete.model_dump_json(exclude_none=True).encode())
        return complete.goal_id

    async def _publish_goal(self, user: UserId, subject: str, data: bytes) -> None:
        with unavailable_unless_answered("The goal's stream"):
            try:
                await self._js.publish(subject, data)
            except APIError as error:
                if _TOO_MANY not in str(error.description):
                    raise
                told = f"Too many goals of {user} wait already; this one was not taken."
                raise RateLimitedError(told, hint="Launch it when others have ended.", retry_after=_MANY_END) from None

    async def result(self, goal: AnyGoal) -> GoalResult | None:
        """Read a goal's result; None while it has none."""
        found, _ = await self._documents(await self._name(goal), "result")
        return decode_result(found["result"]) if found["result"] else None

    async def wait_for_result(self, goal: AnyGoal) -> GoalResult:
        """Wait until the goal has ended, across outages.

        Raises:
            NotFoundError: It was removed after its end, or is another user's goal.
        """
        name = await self._name(goal)
        if (await self._reader()).owner not in (None, name.owner):  # the server permits no subscription to its result
            raise NotFoundError(f"There is no goal {name}.", hint="`ioa goals` lists them.")
        async with open_attention(self._client, subjects.result_of(name)) as attention:
            while True:
                try:
                    found, removed = await self._documents(name, "result")
                except UnavailableError as error:
                    _log.warning("result_unavailable", goal=str(name), error=error.message)
                else:
                    if found["result"]:
                        return decode_result(found["result"])
                    if removed:
                        raise _removed(name, removed)
                await attention.wait()

    async def cancel(self, request: CancelGroup, user: UserId | None = None) -> None:
        """Cancel a goal or a group of one's own; an admin says whose it is, and its user is told that it was an admin."""
        owner = await self._acting_for(user, "cancels it")
        if await self._is_admin_for(owner):
            as_admin = request.model_copy(update={"why": request.why or "Cancelled by an admin."})
            await self._requester.request(subjects.admin(ADMIN, subjects.for_user(subjects.CANCEL, owner)), as_admin, Acknowledged)
        else:
            await self._requester.request(subjects.user(owner, subjects.CANCEL), request, Acknowledged)

    async def answer(self, request: AnswerQuestion, user: UserId | None = None) -> None:
        """Answer what a group asks that works for a goal of one's own; an admin says whose it is."""
        owner = await self._acting_for(user, "answers")
        subject = (
            subjects.admin(ADMIN, subjects.for_user(subjects.ANSWER, owner))
            if await self._is_admin_for(owner)
            else subjects.user(owner, subjects.ANSWER)
        )
        await self._requester.request(subject, request, Acknowledged)

    async def until_refused(self, lasting: timedelta) -> None:
        """Wait until the server has refused to have this connection back for so long.

        Raises:
            NotLetInError: It has.
        """
        await until_refused(self._client, lasting)

    async def _is_admin_for(self, owner: UserId) -> bool:
        """Whether an admin asks for somebody else, so that it is noted as no deed of that one's."""
        return await self.user() == ADMIN != owner

    async def _acting_for(self, user: UserId | None, what: str) -> UserId:
        me = await self.user()
        if user not in (None, me) and me not in (ADMIN, LOCAL):
            raise ForbiddenError(f"That goal is {user}'s, and this credential {me}'s.", hint=f"Its user {what}, or an admin.")
        return user or me

    async def goals(self, *, limit: int = PAGE_GOALS, before: int | None = None, only: GoalFilter = ALL_GOALS) -> GoalList:
        """List goals on record, newest first, a page at a time; see the port."""
        asked = ListGoals(
            limit=min(limit, MAX_LISTED),
            before=before,
            open_only=only.open_only,
            labels=dict(only.labels),
            phase=only.phase,
            owner=only.user,
        )
        page = await self._read(subjects.GOALS_LIST, asked, ListedGoals)
        documents = iter(page.split([size for row in page.goals for size in (row.record, row.snapshot, row.result)]))
        rows = list[GoalStatus]()
        for row, record, snapshot, result in zip(page.goals, documents, documents, documents, strict=True):
            status = GoalStatus(
                decode(GoalRecord, record),
                decode(GroupSnapshot, snapshot) if snapshot else None,
                decode_result(result) if result else None,
            )
            if row.result_left_out:
                status = replace(status, result=await self.result(status.record.goal.name))
            rows.append(status)
        return GoalList(rows, page.before, page.examined)

    async def find_goal(self, start: str) -> GoalName:
        """Complete the id of a goal from its beginning; of one that is not among the newest only a whole id is found.

        One's own goals come first. `user/id` names one of somebody else.

        Raises:
            NotFoundError: No goal's id begins so.
            InvalidInputError: Several do.
        """
        user = await self._known_user()
        try:
            return (await self._read(subjects.GOALS_GET, GetGoal(start=start), GoalFound)).name
        except NotFoundError as error:
            owner, _, rest = start.rpartition("/")
            whose = UserId(owner) if owner else user
            waiting = await self.waiting(GoalName(whose, GoalId(rest))) if whose is not None else 0
            if not waiting:
                raise
            hint = f"{waiting:,} goals of {whose} wait until others of theirs have ended, and are on no list before: it may be one."
            raise NotFoundError(error.message, hint=hint) from None

    async def find_group(self, start: str) -> CommId:
        """Complete the id of a group from its beginning; of one that is not among the newest only a whole id is found.

        Raises:
            NotFoundError: No group's id begins so.
            InvalidInputError: Several do.
        """
        page = await self._read(subjects.GROUPS_LIST, ListGroups(start=start), GroupPage)
        return _groups_in(page)[0].state.comm_id

    async def goal(self, goal: AnyGoal, *, with_team: bool = True) -> GoalStatus:
        """Look at one goal; see the port.

        What holds its policy is decoded last, so that nothing of that is kept while something else is read.

        Raises:
            NotFoundError: There is no such goal.
        """
        name = await self._name(goal)
        parts: tuple[GoalPart, ...] = ("record", "snapshot", "result", "launch") if with_team else ("record", "snapshot", "result")
        found, removed = await self._documents(name, *parts)
        if not found["record"]:
            if removed:
                raise _removed(name, removed)
            waiting = await self.waiting(name)
            if waiting:
                told = f"There is no goal {name} yet: {waiting:,} of {name.owner} wait until others of the same user have ended."
                raise NotFoundError(told, hint="Goals of a user begin in the order in which they were launched.")
            raise NotFoundError(f"There is no goal {name}.", hint="`ioa goals` lists them.")
        snapshot = decode(GroupSnapshot, found["snapshot"]) if found["snapshot"] else None
        if snapshot is not None and found.get("launch"):
            launch = decode(Entry, found["launch"]).event
            if isinstance(launch, GroupLaunched):
                snapshot = snapshot.model_copy(update={"charter": launch.charter})
        result = decode_result(found["result"]) if found["result"] else None
        return GoalStatus(decode(GoalRecord, found["record"]), snapshot, result)

    async def waiting(self, goal: AnyGoal) -> int:
        """Return how many goals of the same user are not begun."""
        queue = intake_consumer((await self._name(goal)).owner)
        queues = (one for stream in (await self.standing()).streams if stream.name == GOALS for one in stream.queues)
        return sum(one.waiting for one in queues if one.name == queue)

    async def groups(
        self, *, limit: int = PAGE_GOALS, before: int | None = None, open_only: bool = False, owner: UserId | None = None
    ) -> GroupList:
        """List the groups of goals on record, newest goal first, nested groups after their parents; see the port."""
        asked = ListGroups(limit=min(limit, MAX_LISTED), before=before, open_only=open_only, owner=owner)
        page = await self._read(subjects.GROUPS_LIST, asked, GroupPage)
        return GroupList(_groups_in(page), page.before)

    async def prune(self, request: Prune) -> Pruned:
        """Remove one part of the goals that ended long ago; the answer says where the next part begins. For operators.

        Raises:
            UnavailableError: Nobody answers.
            ForbiddenError: Who asks may not.
        """
        return await self._ask_as_operator(subjects.PRUNE, request, Pruned, timeout=_PRUNE_TIMEOUT)

    async def remove_agent(self, request: RemoveAgent) -> None:
        """Forget an agent. For operators.

        Raises:
            NotFoundError: There is no such agent.
            ConflictError: It is online.
            ForbiddenError: Who asks may not.
        """
        await self._ask_as_operator(subjects.REMOVE_AGENT, request, Acknowledged)

    async def _ask_as_operator(self, asked: str, request: Model, reply: type[Reply], *, timeout: timedelta | None = None) -> Reply:
        """Ask what an admin may; of anybody else's request nobody hears, and the server says why beside."""
        me = await self._known_user()
        subject = subjects.admin(me or ADMIN, asked)
        try:
            return await self._requester.request(subject, request, reply, timeout=timeout)
        except UnavailableError:
            if not may_not_publish(self._client, subject):
                raise
            raise ForbiddenError("This credential may not do that: it is no admin's.", hint=ADMIN_HINT) from None

    async def group(self, comm_id: CommId) -> GroupSnapshot:
        """Look at one group.

        Raises:
            NotFoundError: There is no such group.
        """
        [found] = _groups_in(await self._read(subjects.GROUPS_LIST, ListGroups(comm_id=comm_id), GroupPage))
        return found

    async def entries(
        self, comm_id: CommId, *, after: int = 0, limit: int | None = None, max_bytes: int | None = None
    ) -> Sequence[StoredEntry]:
        """Read a group's log after a sequence, in order; see the port."""
        return await self._entries(comm_id, limit, max_bytes, after=after)

    async def entries_before(
        self, comm_id: CommId, *, before: int, limit: int, max_bytes: int | None = None
    ) -> Sequence[StoredEntry]:
        """Read the last entries of a group's log before a sequence, in order; see the port."""
        return await self._entries(comm_id, limit, max_bytes, before=before)

    async def _entries(
        self, comm_id: CommId, limit: int | None, max_bytes: int | None, *, after: int = 0, before: int | None = None
    ) -> Sequence[StoredEntry]:
        """Read as many pages as needed."""
        found, size, more = deque[StoredEntry](), 0, True
        most, most_bytes = (sys.maxsize if one is None else one for one in (limit, max_bytes))
        while more and len(found) < most and size < most_bytes:
            bounds = {"limit": min(most - len(found), MAX_PAGE_ENTRIES), "max_bytes": min(most_bytes - size, MAX_PAGE_BYTES)}
            page = await self._read(subjects.LOG_PAGE, ReadLog(comm_ids=(comm_id,), after=after, before=before, **bounds), LogPage)
            entries = [stored for _, stored in _entries_in(page, [comm_id])]
            size, more = size + len(page.data), page.more
            if before is None:
                found.extend(entries)
                after = found[-1].seq if found else after
            else:
                found.extendleft(reversed(entries))
                before = found[0].seq if found else before
        return list(found)

    async def heads(self, comm_ids: Sequence[CommId], *, at: int) -> Mapping[CommId, GroupSnapshot]:
        """Return the state of each group at a sequence; see the port."""
        found, left, before = dict[CommId, GroupSnapshot](), list(comm_ids), min(at, 2**63 - 2) + 1
        while left:
            asked = left[:MAX_GROUPS_READ]
            page = await self._read(subjects.LOG_PAGE, ReadLog(comm_ids=tuple(asked), before=before, limit=1), LogPage)
            for comm_id, stored in _entries_in(page, asked):
                found[comm_id] = GroupSnapshot(seq=stored.seq, state=stored.entry.state, charter=None)
            left = left[page.entries[-1].group + 1 if page.more else len(asked) :]
        return found

    @asynccontextmanager
    async def listen(self, comm_id: CommId, listener: GroupListener) -> AsyncIterator[None]:
        """Listen to a goal's group and the groups nested in it; see the port."""
        owner = (await self._reader()).owner
        async with listening(self._client, subjects.any_live(owner or UserId("*"), comm_id), listener):
            yield

    async def agents(self, *, online_only: bool = False) -> Sequence[AgentStatus]:
        """List all agents, by id."""
        return (await self.roster(online_only=online_only)).agents

    async def roster(self, *, online_only: bool = False) -> Roster:
        """List all agents, by id, and what keeps others off the list."""
        agents: list[AgentStatus] = []
        skipped: list[str] = []
        async with aclosing(pages_of_agents(self.list_agents, online_only=online_only)) as pages:
            async for page in pages:
                agents += page.agents
                if page.left_out:
                    _log.warning("agents_not_listed", why="their cards are too large", agent_ids=page.left_out)
                skipped += [*page.unreadable, *(f"{agent_id}: Its card is too large to be shown." for agent_id in page.left_out)]
        return Roster(agents, skipped)

    async def list_agents(self, request: ListAgents) -> Agents:
        """Ask for one page of a list of agents."""
        return await self._requester.request(await self._subject(subjects.LIST_AGENTS), request, Agents)

    async def search(self, search: Search) -> SearchResult:
        """Ask discovery."""
        return await self._requester.request(
            subjects.user(await self.user(), subjects.SEARCH), search, SearchResult, timeout=SEARCH_TIMEOUT
        )

    async def index_status(self) -> IndexStatus:
        """Ask how discovery's index stands."""
        return await self._requester.request(await self._subject(subjects.INDEX_STATUS), AskIndexStatus(), IndexStatus)

    async def upload(
        self,
        name: str,
        data: bytes | AsyncIterable[bytes],
        *,
        media_type: str | None = None,
        goal_id: GoalId | None = None,
    ) -> Artifact:
        """Store a file of one's own; see the port."""
        put = await self._putting(goal_id or GoalId(RandomIds().new("upload")), name)
        return await put_data(name, data, media_type, put)

    async def stream(self, artifact: Artifact, *, start: int = 0, stop: int | None = None) -> AsyncGenerator[bytes, None]:
        """Yield a file, or a part of it; see the port."""
        user = await self.user()

        async def get(after: int) -> FilePiece:
            request = GetFile(object_name=artifact.object_name, sha256=artifact.sha256, after=after)
            return await self._requester.request(subjects.user(user, subjects.GET_UPLOAD), request, FilePiece, timeout=FILE_TIMEOUT)

        async with aclosing(stream_in_pieces(artifact, get, start=start, stop=stop)) as pieces:
            async for piece in pieces:
                yield piece

    async def fetch(self, artifact: Artifact) -> bytes:
        """Fetch a file a goal produced."""
        return b"".join([piece async for piece in self.stream(artifact)])

    async def stored(self) -> StoredBytes:
        """Ask whose files fill the store."""
        return await self._requester.request(await self._subject(subjects.STORED), AskStored(), StoredBytes)

    async def _putting(self, goal_id: GoalId, place: str) -> PutPiece:
        user = await self.user()

        async def put(file: Announced, standing: PutStanding | None, piece: bytes) -> Stored:
            request = PutUpload(user=user, goal_id=goal_id, place=place, file=file, standing=standing, data=piece)
            return await self._requester.request(subjects.user(user, subjects.PUT_UPLOAD), request, Stored, timeout=FILE_TIMEOUT)

        return put

    async def put_team(self, team: TeamSpec) -> NamedTeam:
        """Keep a team under its own name; see the port."""
        user = await self.user()
        if user == ADMIN:
            whose = [row.user for row in await self.teams() if row.name == team.team]
            user = next(iter(whose), user)
        return await self._requester.request(subjects.user(user, subjects.PUT_TEAM), PutTeam(team=team), NamedTeam)

    async def team(self, reference: TeamReference) -> NamedTeam:
        """Read a version of a team; see the port."""
        asked = GetTeam(name=reference.name, version=reference.version)
        return await self._requester.request(subjects.user(await self.user(), subjects.GET_TEAM), asked, NamedTeam)

    async def teams(self) -> Sequence[TeamRow]:
        """List all teams by name, each with its newest version."""
        return (await self._requester.request(subjects.user(await self.user(), subjects.LIST_TEAMS), ListTeams(), TeamList)).teams

    async def standing(self) -> StoreStanding:
        """Tell how JetStream stands. Whoever may do everything asks it; all others ask group setup, which bounds how often.

        Raises:
            UnavailableError: It does not answer.
        """
        user = await self._known_user()
        if user in (ADMIN, LOCAL):
            return await read_standing(self._client)
        return await self._requester.request(await self._subject(subjects.STANDING), AskStoreStanding(), StoreStanding)

    async def _known_user(self) -> UserId | None:
        """Tell the same; None for who launches none."""
        try:
            return await self.user()
        except ForbiddenError:
            return None

    async def _name(self, goal: AnyGoal) -> GoalName:
        return goal if isinstance(goal, GoalName) else GoalName(await self.user(), goal)


def _removed(name: GoalName, ending: str) -> NotFoundError:
    return NotFoundError(f"The goal {name} has ended ({ending}) and was removed: nothing else is kept of it.")


def _groups_in(page: GroupPage) -> list[GroupSnapshot]:
    return [decode(GroupSnapshot, data) for data in page.split(page.groups)]


def _entries_in(page: LogPage, comm_ids: Sequence[CommId]) -> Iterator[tuple[CommId, StoredEntry]]:
    """Decode the entries of a page, with their groups.

    Raises:
        UnreadableEntryError: An entry is no entry.
    """
    for row, data in zip(page.entries, page.split([row.size for row in page.entries]), strict=True):
        yield comm_ids[row.group], decoded_entry(comm_ids[row.group], row.seq, data)


@asynccontextmanager
async def open_system(settings: NatsSettings, *, patience: timedelta) -> AsyncIterator[NatsSystemClient]:
    """Connect to a running system.

    Raises:
        UnavailableError: No NATS server answers within `patience`.
    """
    async with open_connection(settings, patience=patience) as client:
        yield NatsSystemClient(client)
