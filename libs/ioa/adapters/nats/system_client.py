"""The system as its users see it, over NATS: launching goals, following them, looking at groups and agents."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, aclosing, asynccontextmanager
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import structlog
from nats.aio.client import Client
from nats.js.errors import APIError

from ioa.adapters.input_files import put_data, read_inputs
from ioa.adapters.nats.connection import NatsSettings, may_not_publish, open_connection, until_refused
from ioa.adapters.nats.dead_letters import NatsDeadLetterBox
from ioa.adapters.nats.delivery import NatsResults
from ioa.adapters.nats.following import follow_subject
from ioa.adapters.nats.goals import NatsGoalRecords
from ioa.adapters.nats.listing import Lists
from ioa.adapters.nats.log import NatsGroupLog
from ioa.adapters.nats.log_reading import Logs
from ioa.adapters.nats.reading import DirectReads
from ioa.adapters.nats.request import FILE_TIMEOUT, SEARCH_TIMEOUT, NatsRequester, Reply
from ioa.adapters.nats.retention import NatsEndedGoals
from ioa.adapters.nats.stream_stats import read_standing
from ioa.adapters.nats.topology import GOALS, RESULTS, intake_consumer
from ioa.adapters.nats.translated_errors import unavailable_unless_answered
from ioa.adapters.nats.whoami import ask_user
from ioa.adapters.system_clock import RandomIds
from ioa.errors import ForbiddenError, NotFoundError, RateLimitedError, UnavailableError
from ioa.group.events import GroupLaunched
from ioa.group.requests import AnswerQuestion, CancelGroup, GetGroup, GroupSnapshot
from ioa.group.state import Charter
from ioa.ports.agent_directory import Roster, pages_of_agents
from ioa.ports.dead_letter_box import DeadLetterBox
from ioa.ports.goal_client import ALL_GOALS, PAGE_GOALS, AnyGoal, GoalFilter, GoalList, GoalStatus
from ioa.ports.group_client import GroupList, GroupListener
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
from ioa.protocol.goals import Artifact, GoalRecord, GoalResult, ending_of
from ioa.protocol.ids import ADMIN, LOCAL, CommId, GoalId, GoalName, UserId
from ioa.protocol.model import Model
from ioa.protocol.named_teams import GetTeam, ListTeams, NamedTeam, PutTeam, TeamList, TeamReference, TeamRow
from ioa.protocol.registry import Acknowledged, Agents, ListAgents, RemoveAgent
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


class NatsSystemClient:
    """A `SystemClient` over one connection. Made by `open_system`.

    Args:
        client: The connection.
        user: Whose goals are launched over it, if its credential is for several users.
    """

    def __init__(self, client: Client, user: UserId | None = None) -> None:
        self._client = client
        self._known = user
        self._js = DirectReads(client)
        self._requester = NatsRequester(client)
        self._log = NatsGroupLog(client, js=self._js)
        self._goals = NatsGoalRecords(self._js)
        self._results = NatsResults(self._js)
        self._logs = Logs(client)
        self._ended = NatsEndedGoals(self._js)
        self._lists = Lists(client)
        self._dead_letters = NatsDeadLetterBox(client)

    @property
    def dead_letters(self) -> DeadLetterBox:
        """What could not be processed."""
        return self._dead_letters

    async def user(self) -> UserId:
        """Tell whose goals are launched here; the server says so, once.

        Raises:
            ForbiddenError: Nobody's.
            UnavailableError: The server does not answer.
        """
        if self._known is None:
            self._known = await ask_user(self._client)
        return self._known

    async def complete(self, order: GoalOrder, files: Sequence[Path] = ()) -> GoalOrder:
        """Give an order an id, unless it has one, and store the files that belong to it.

        Raises:
            InvalidInputError: A file cannot be read, or two have the same name.
            UnavailableError: The system does not take it.
        """
        goal_id = order.goal_id or GoalId(RandomIds().new("goal"))
        stored = [
            await put_data(one.name, one.data, one.media_type, await self._putting(goal_id, one.place))
            async for one in read_inputs(files)
        ]
        return order.model_copy(update={"goal_id": goal_id, "inputs": (*order.inputs, *stored)})

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
        return await self._results.get(await self._name(goal))

    async def wait_for_result(self, goal: AnyGoal) -> GoalResult:
        """Wait until the goal has ended, across outages.

        Raises:
            NotFoundError: It ended so long ago that it was removed.
        """
        name = await self._name(goal)
        await self._refuse_removed(name)
        async with aclosing(follow_subject(self._client, RESULTS, subjects.result_of(name))) as messages:
            async for message in messages:
                return decode_result(message.data)
        raise AssertionError("a stream is followed for ever")

    async def cancel(self, request: CancelGroup, user: UserId | None = None) -> None:
        """Cancel a goal or a group of one's own; an admin says whose it is, and its user is told that it was an admin."""
        owner = await self._acting_for(user, "cancels it")
        if await self._is_admin_for(owner):
            as_admin = request.model_copy(update={"why": request.why or "Cancelled by an admin."})
            await self._requester.request(subjects.cancel_for(owner), as_admin, Acknowledged)
        else:
            await self._requester.request(subjects.cancel(owner), request, Acknowledged)

    async def answer(self, request: AnswerQuestion, user: UserId | None = None) -> None:
        """Answer what a group asks that works for a goal of one's own; an admin says whose it is."""
        owner = await self._acting_for(user, "answers")
        subject = subjects.answer_for(owner) if await self._is_admin_for(owner) else subjects.answer(owner)
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
        """List goals on record, newest first, a page at a time; `before` is what the page before said."""
        return await self._lists.goals(limit=limit, before=before, only=only)

    async def find_goal(self, start: str) -> GoalName:
        """Complete the id of a goal from its beginning; of one that is not among the newest only a whole id is found.

        One's own goals come first. `user/id` names one of somebody else.

        Raises:
            NotFoundError: No goal's id begins so.
            InvalidInputError: Several do.
        """
        user = await self._known_user()
        try:
            return await self._lists.find_goal(start, user)
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
        return await self._lists.find_group(start)

    async def goal(self, goal: AnyGoal, *, with_team: bool = True) -> GoalStatus:
        """Look at one goal; see the port.

        What holds its policy is decoded last, so that nothing of that is kept while something else is read.

        Raises:
            NotFoundError: There is no such goal.
        """
        name = await self._name(goal)
        stored = await self._goals.stored(name.comm_id)
        if stored is None:
            await self._refuse_removed(name)
            waiting = await self.waiting(name)
            if waiting:
                told = f"There is no goal {name} yet: {waiting:,} of {name.owner} wait until others of the same user have ended."
                raise NotFoundError(told, hint="Goals of a user begin in the order in which they were launched.")
            raise NotFoundError(f"There is no goal {name}.", hint="`ioa goals` lists them.")
        record = decode(GoalRecord, stored)
        standing, result = await self._standing(name.comm_id), await self._results.get(record.goal.name)
        if standing is not None and with_team:
            standing = standing.model_copy(update={"charter": await self._charter(name.comm_id)})
        return GoalStatus(decode(GoalRecord, stored) if with_team else record, standing, result)

    async def waiting(self, goal: AnyGoal) -> int:
        """Return how many goals of the same user are not begun."""
        queue = intake_consumer((await self._name(goal)).owner)
        queues = (one for stream in (await self.standing()).streams if stream.name == GOALS for one in stream.queues)
        return sum(one.waiting for one in queues if one.name == queue)

    async def groups(
        self, *, limit: int = PAGE_GOALS, before: int | None = None, open_only: bool = False, owner: UserId | None = None
    ) -> GroupList:
        """List the groups of goals on record, newest goal first, nested ones behind their parents; see the port."""
        return await self._lists.groups(limit=limit, before=before, open_only=open_only, owner=owner)

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

    async def _ask_as_operator(
        self, subject: str, request: Model, reply: type[Reply], *, timeout: timedelta | None = None
    ) -> Reply:
        """Ask what an admin may; of anybody else's request nobody hears, and the server says why beside."""
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
        return await self._requester.request(subjects.GET_GROUP, GetGroup(comm_id=comm_id), GroupSnapshot)

    async def entries(
        self, comm_id: CommId, *, after: int = 0, limit: int | None = None, max_bytes: int | None = None
    ) -> Sequence[StoredEntry]:
        """Read a group's log behind a sequence, in order; see the port."""
        return await self._logs.entries(comm_id, after=after, limit=limit, max_bytes=max_bytes)

    async def entries_before(
        self, comm_id: CommId, *, before: int, limit: int, max_bytes: int | None = None
    ) -> Sequence[StoredEntry]:
        """Read the last entries of a group's log before a sequence, in order; see the port."""
        return await self._logs.entries_before(comm_id, before=before, limit=limit, max_bytes=max_bytes)

    async def heads(self, comm_ids: Sequence[CommId], *, at: int) -> Mapping[CommId, GroupSnapshot]:
        """Tell where each group stood at a sequence; see the port."""
        return await self._logs.heads(comm_ids, at=at)

    def listen(self, comm_id: CommId, listener: GroupListener) -> AbstractAsyncContextManager[None]:
        """Listen to a group; see the port."""
        return self._logs.listen(comm_id, listener)

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
        return await self._requester.request(subjects.LIST_AGENTS, request, Agents)

    async def search(self, search: Search) -> SearchResult:
        """Ask discovery."""
        return await self._requester.request(subjects.search_of(await self.user()), search, SearchResult, timeout=SEARCH_TIMEOUT)

    async def index_status(self) -> IndexStatus:
        """Ask how discovery's index stands."""
        return await self._requester.request(subjects.INDEX_STATUS, AskIndexStatus(), IndexStatus)

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
            return await self._requester.request(subjects.get_upload(user), request, FilePiece, timeout=FILE_TIMEOUT)

        async with aclosing(stream_in_pieces(artifact, get, start=start, stop=stop)) as pieces:
            async for piece in pieces:
                yield piece

    async def fetch(self, artifact: Artifact) -> bytes:
        """Fetch a file a goal produced."""
        return b"".join([piece async for piece in self.stream(artifact)])

    async def stored(self) -> StoredBytes:
        """Ask whose files fill the store."""
        return await self._requester.request(subjects.STORED, AskStored(), StoredBytes)

    async def _putting(self, goal_id: GoalId, place: str) -> PutPiece:
        user = await self.user()

        async def put(file: Announced, standing: PutStanding | None, piece: bytes) -> Stored:
            request = PutUpload(user=user, goal_id=goal_id, place=place, file=file, standing=standing, data=piece)
            return await self._requester.request(subjects.put_upload(user), request, Stored, timeout=FILE_TIMEOUT)

        return put

    async def _standing(self, comm_id: CommId) -> GroupSnapshot | None:
        head = await self._log.last(comm_id)
        return None if head is None else GroupSnapshot(seq=head.seq, state=head.entry.state, charter=None)

    async def _charter(self, comm_id: CommId) -> Charter | None:
        first = await self._log.read(comm_id, after=0, limit=1)
        event = first[0].entry.event if first else None
        return event.charter if isinstance(event, GroupLaunched) else None

    async def put_team(self, team: TeamSpec) -> NamedTeam:
        """Keep a team under its own name; see the port."""
        user = await self.user()
        if user == ADMIN:
            whose = [row.user for row in await self.teams() if row.name == team.team]
            user = next(iter(whose), user)
        return await self._requester.request(subjects.put_team(user), PutTeam(team=team), NamedTeam)

    async def team(self, reference: TeamReference) -> NamedTeam:
        """Read a version of a team; see the port."""
        asked = GetTeam(name=reference.name, version=reference.version)
        return await self._requester.request(subjects.get_team(await self.user()), asked, NamedTeam)

    async def teams(self) -> Sequence[TeamRow]:
        """List all teams by name, each with its newest version."""
        return (await self._requester.request(subjects.list_teams(await self.user()), ListTeams(), TeamList)).teams

    async def standing(self) -> StoreStanding:
        """Tell how JetStream stands. Whoever may do everything asks it; all others ask group setup, which bounds how often.

        Raises:
            UnavailableError: It does not answer.
        """
        user = await self._known_user()
        if user in (ADMIN, LOCAL):
            return await read_standing(self._client)
        return await self._requester.request(subjects.standing_of(user), AskStoreStanding(), StoreStanding)

    async def _known_user(self) -> UserId | None:
        """Tell the same; None for who launches none."""
        try:
            return await self.user()
        except ForbiddenError:
            return None

    async def _name(self, goal: AnyGoal) -> GoalName:
        return goal if isinstance(goal, GoalName) else GoalName(await self.user(), goal)

    async def _refuse_removed(self, goal: GoalName) -> None:
        ending = ending_of(await self._ended.find(goal))
        if ending is not None:
            raise NotFoundError(f"The goal {goal} has ended ({ending}) and was removed: nothing else is kept of it.")


@asynccontextmanager
async def open_system(settings: NatsSettings, *, patience: timedelta) -> AsyncIterator[NatsSystemClient]:
    """Connect to a running system.

    Raises:
        UnavailableError: No NATS server answers within `patience`.
    """
    async with open_connection(replace(settings, asks_to_read=True), patience=patience) as client:
        yield NatsSystemClient(client)
