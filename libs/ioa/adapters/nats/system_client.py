"""The system as users and operators see it, over NATS: goals, groups, agents, files and teams."""

from __future__ import annotations

import hashlib
import sys
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from datetime import timedelta
from functools import partial
from pathlib import Path

import structlog
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.js.api import Header

from ioa.adapters.input_files import put_data, read_inputs
from ioa.adapters.nats.auth.identity import RequestCaller, ask_caller, user_of
from ioa.adapters.nats.delivery.nats_delivery import read_progress
from ioa.adapters.nats.requests.request import (
    DEFAULT_TIMEOUT,
    FILE_TIMEOUT,
    NOT_PERMITTED_HINT,
    SEARCH_TIMEOUT,
    NatsRequester,
    Reply,
)
from ioa.adapters.nats.streams.nats_group_log import read_entry
from ioa.adapters.nats.streams.stream import Stream, StreamMessage
from ioa.adapters.nats.streams.stream_stats import read_standing
from ioa.adapters.nats.streams.topology import DEAD, GOALS, intake_consumer
from ioa.adapters.nats.wire.subscriptions import open_attention, watching
from ioa.adapters.nats.wire.translated_errors import TooManyMessagesError, unavailable_unless_answered
from ioa.adapters.system_clock import RandomIds
from ioa.concurrency import together
from ioa.errors import ForbiddenError, InvalidInputError, NotFoundError, NotPermittedError, RateLimitedError, UnavailableError
from ioa.foreign_text import shown_in_line
from ioa.group.events import GroupLaunched
from ioa.group.requests import (
    PAGE_GOALS,
    AnswerQuestion,
    AnyGoal,
    CancelGoal,
    GoalFound,
    GoalList,
    GoalPhase,
    GoalStatus,
    GroupList,
    GroupSnapshot,
)
from ioa.ports.group_log import GroupListener, StoredEntry
from ioa.protocol import subjects
from ioa.protocol.agents.search import AskIndexStatus, IndexStatus, Search, SearchResult
from ioa.protocol.cards import AgentStatus
from ioa.protocol.codec import validate
from ioa.protocol.goal_order import GoalOrder
from ioa.protocol.goals import MAX_INPUTS, Announced, Artifact, GoalResult
from ioa.protocol.ids import ADMIN, LOCAL, AgentId, CommId, GoalId, GoalName, UserId, complete_id, is_token, parse_goal_id
from ioa.protocol.model import Model
from ioa.protocol.operation.dead_letters import DeadLetter
from ioa.protocol.operation.status import AskStoreStanding, Prune, Pruned, StoreStanding
from ioa.protocol.registry import Acknowledged, Agents, ListAgents, RemoveAgent
from ioa.protocol.setup import file_requests, reads
from ioa.protocol.teams.stored_teams import GetTeam, ListTeams, NamedTeam, PutTeam, TeamList, TeamReference, TeamRow
from ioa.protocol.teams.team_file import TeamSpec

_FULL_RETRY_AFTER = timedelta(minutes=1)
ADMIN_HINT = "`ioa credentials create --admin NAME` creates an admin's; IOA_NATS_SEED names its seed."
_PRUNE_TIMEOUT = timedelta(seconds=30)
_AGENTS_PAGE = 200
_NEWEST_GROUPS = 100
"""Maximum goals among whose groups the beginning of a group's id is completed."""

_log = structlog.get_logger(__name__)


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
    """Requests of a user or an operator, over one connection. `Client` adds the methods of programs.

    Args:
        client: The connection.
        user: The user whose goals are launched, if the credential is for several users. None: the credential's user.
        reader: The name under which the goals of all users are read, if the credential permits that.

    Raises:
        UnavailableError: From every method.
    """

    def __init__(self, client: Client, user: UserId | None = None, *, reader: str | None = None) -> None:
        self._client = client
        self._known = None if user is None else RequestCaller("user", user)
        self._reader_name = reader
        self._requester = NatsRequester(client)

    @property
    def connection(self) -> Client:
        """The connection."""
        return self._client

    async def user(self) -> UserId:
        """Return the user of the credential, as nats-server reports it, or raise `ForbiddenError` if it launches no goals."""
        return user_of(await self._caller())

    async def _caller(self) -> RequestCaller:
        self._known = self._known or await ask_caller(self._client)
        return self._known

    async def _known_user(self) -> UserId | None:
        """Return the user of the credential; None if it launches no goals."""
        with suppress(ForbiddenError):
            return await self.user()
        return None

    async def _reader(self) -> reads.GoalReader:
        """Return the name for read requests, and whether the caller reads the goals of all users."""
        if self._reader_name is not None:
            return reads.GoalReader(UserId(self._reader_name), reads_all=True)
        user = await self.user()
        return reads.GoalReader(user, user in (ADMIN, LOCAL))

    async def _read(self, request: str, asked: Model, reply: type[Reply]) -> Reply:
        """Send a read request (`ioa.protocol.setup.reads`)."""
        reader = await self._reader()
        subject = subjects.reader(reader.user, request) if reader.reads_all else subjects.user(reader.user, request)
        return await self._requester.request(subject, asked, reply)

    async def _ask(self, request: str, asked: Model, reply: type[Reply], *, timeout: timedelta = DEFAULT_TIMEOUT) -> Reply:
        """Send a request as the user."""
        return await self._requester.request(subjects.user(await self.user(), request), asked, reply, timeout=timeout)

    async def _status(self, request: str, asked: Model, reply: type[Reply]) -> Reply:
        """Send a status request, which auditors and agents may not, in the caller's role."""
        try:
            caller = await self._caller()
        except ForbiddenError:
            caller = RequestCaller("auditor", "")
        if caller.role == "auditor":
            raise NotPermittedError(f"This credential may not request {request}.", hint=NOT_PERMITTED_HINT)
        return await self._requester.request(caller.subject(request), asked, reply)

    async def _operate(self, request: str, asked: Model, reply: type[Reply], *, timeout: timedelta = DEFAULT_TIMEOUT) -> Reply:
        """Send a request of admins."""
        subject = subjects.admin(await self._known_user() or ADMIN, request)
        try:
            return await self._requester.request(subject, asked, reply, timeout=timeout)
        except NotPermittedError:
            raise ForbiddenError("This needs the credential of an admin.", hint=ADMIN_HINT) from None

    async def _act(self, request: str, asked: Model, owner: UserId) -> None:
        """Send a request about a goal of the caller, or as an admin about a goal of another user."""
        me = await self.user()
        if me == ADMIN != owner:
            subject = subjects.admin(ADMIN, subjects.for_user(request, owner))
        elif owner == me or me == LOCAL:
            subject = subjects.user(owner, request)
        else:
            raise ForbiddenError(f"The goal belongs to {owner}; this credential is {me}'s.", hint="Ask its user or an admin.")
        await self._requester.request(subject, asked, Acknowledged)

    async def _found(self, name: GoalName, *parts: reads.GoalPart) -> GoalFound:
        """Read documents of a goal."""
        asked = reads.GetGoal(user=name.user, goal_id=name.goal_id, parts=parts)
        found = await self._read(subjects.GOALS_GET, asked, GoalFound)
        while left := found.left_out:
            more = await self._read(subjects.GOALS_GET, asked.model_copy(update={"parts": left}), GoalFound)
            read = {str(part): getattr(more, part) for part in left if part not in more.left_out}
            found = found.model_copy(update={**read, "left_out": more.left_out, "removed": found.removed or more.removed})
        return found

    async def complete(self, order: GoalOrder, files: Sequence[Path] = ()) -> GoalOrder:
        """Give an order an id, unless it has one, and store its files.

        Raises:
            InvalidInputError: A file cannot be read, two have the same name, or there are too many.
            NotFoundError: No agent or pool with the addressee's name was ever registered.
        """
        if (count := len(order.inputs) + len(files)) > MAX_INPUTS:
            allowed = f"at most {MAX_INPUTS} are allowed"
            raise InvalidInputError(f"The goal has {count:,} input files; {allowed}.", hint="Pack them into an archive.")
        if order.agent is not None:
            await self._check_registered(order.agent)
        goal_id = order.goal_id or GoalId(RandomIds().new("goal"))
        stored = [
            await put_data(one.name, one.data, one.media_type, partial(self._put_piece, goal_id, one.place))
            async for one in read_inputs(files)
        ]
        complete = order.model_copy(update={"goal_id": goal_id, "inputs": (*order.inputs, *stored)})
        for name, uses in Counter(one.name for one in complete.inputs).items():
            if uses > 1:  # an agent reads its inputs from one folder
                raise InvalidInputError(
                    f"Two inputs have the same name, {shown_in_line(name)}.", hint="Give each a name of its own."
                )
        return complete

    async def _check_registered(self, name: AgentId) -> None:
        """Check that an agent or a pool has this name, online or not. If the registry does not answer, intake decides."""
        with suppress(UnavailableError):
            if not (await self.list_agents(ListAgents(name=name, limit=1))).agents:
                raise NotFoundError(f"No agent or pool {name!r} has ever registered.", hint="`ioa agents` lists all agents.")

    async def submit(self, order: GoalOrder, files: Sequence[Path] = ()) -> GoalId:
        """Complete an order and publish it; see `publish`."""
        return (await self.publish(await self.complete(order, files))).goal_id

    async def publish(self, order: GoalOrder) -> GoalName:
        """Publish a complete order. An order with the same id is the same goal.

        Raises:
            RateLimitedError: Too many goals of this user wait.
            StoreFullError: The store is full.
        """
        assert order.goal_id is not None, "a complete order has an id"
        user = await self.user()
        subject = subjects.goal_to(user, order.agent) if order.agent else subjects.goal_of(user)
        try:
            await Stream(self._client, GOALS).publish(subject, order.model_dump_json(exclude_none=True).encode())
        except TooManyMessagesError:
            raise RateLimitedError(
                f"Too many goals of {user} wait; the goal was not stored.",
                hint="Launch it when other goals have ended.",
                retry_after=_FULL_RETRY_AFTER,
            ) from None
        return GoalName(user, order.goal_id)

    async def result(self, goal: AnyGoal) -> GoalResult | None:
        """Return a goal's result; None if it has none."""
        return (await self._found(await self._name(goal), "result")).result

    async def wait_for_result(self, goal: AnyGoal) -> GoalResult:
        """Wait until the goal has ended, across outages.

        Raise `NotFoundError` if the goal was removed after its end, or belongs to another user.
        """
        name = await self._name(goal)
        if (await self._reader()).owner not in (None, name.user):  # the server permits no subscription to its result
            raise _no_goal(name)
        async with open_attention(self._client, subjects.result_of(name)) as attention:
            while True:
                try:
                    found = await self._found(name, "result")
                except UnavailableError as error:
                    _log.warning("result_unavailable", goal=str(name), error=error.message)
                else:
                    if found.result is not None:
                        return found.result
                    if found.removed:
                        raise _removed(name, found.removed)
                await attention.wait()

    async def cancel(self, goal: AnyGoal, why: str = "") -> None:
        """Cancel a goal of the caller, or as an admin of another user; a goal that has ended does not change.

        Raises:
            NotFoundError: There is no such goal.
            ForbiddenError: The goal belongs to another user.
        """
        name = await self._name(goal)
        if not why and await self.user() == ADMIN != name.user:
            why = "Cancelled by an admin."
        await self._act(subjects.CANCEL, validate(CancelGoal, {"goal_id": name.goal_id, "why": why}), name.user)

    async def send_answer(self, request: AnswerQuestion, user: UserId | None = None) -> None:
        """Answer a question of a group that works for a goal of the caller, or as an admin of another user."""
        await self._act(subjects.ANSWER, request, user or await self.user())

    async def goals(
        self,
        *,
        limit: int = PAGE_GOALS,
        before: int | None = None,
        open_only: bool = False,
        labels: Mapping[str, str] | None = None,
        phase: GoalPhase | None = None,
        user: UserId | None = None,
    ) -> GoalList:
        """List a page of goals, newest first.

        Args:
            limit: Maximum number of goals. A filtered page can have fewer goals although more follow.
            before: Cursor of the previous page; None lists the newest goals.
            open_only: List only goals that have not ended.
            labels: List only goals with all of these labels.
            phase: List only goals in this phase.
            user: List only goals of this user; None lists all goals that the credential may read.
        """
        chosen = {"open_only": open_only, "labels": labels or {}, "phase": phase, "owner": user}
        asked = validate(reads.ListGoals, {"limit": min(limit, reads.MAX_LISTED), "before": before, **chosen})
        page = await self._read(subjects.GOALS_LIST, asked, GoalList)
        rows = [await self._complete_row(row) if row.lacks_result else row for row in page.goals]
        return page.model_copy(update={"goals": tuple(rows)})

    async def _complete_row(self, row: GoalStatus) -> GoalStatus:
        return row.model_copy(update={"lacks_result": False, "result": await self.result(row.record.goal.name)})

    async def find_goal(self, start: str) -> GoalName:
        """Complete the id of a goal, or `user/id`. Beginnings are completed among the newest goals, the caller's own first.

        Raise `NotFoundError` if no goal's id begins so, and `InvalidInputError` if several do.
        """
        return (await self._read(subjects.GOALS_GET, reads.GetGoal(start=start), GoalFound)).name

    async def find_group(self, start: str) -> CommId:
        """Complete the id of a group. Beginnings are completed among the newest groups; see `find_goal` for errors."""
        with suppress(NotFoundError):
            if is_token(start):
                return (await self.group(CommId(start))).state.comm_id
        page = await self.groups(limit=_NEWEST_GROUPS)
        return CommId(complete_id("group", start, [one.state.comm_id for one in page.groups], complete=page.before is None))

    async def goal(self, goal: AnyGoal, *, with_team: bool = True) -> GoalStatus:
        """Return one goal, with the charter of its group if `with_team`, or raise `NotFoundError`."""
        name = await self._name(goal)
        team: tuple[reads.GoalPart, ...] = ("launch",) if with_team else ()
        found = await self._found(name, "record", "standing", "result", *team)
        if found.record is None:
            raise _removed(name, found.removed) if found.removed else _no_goal(name)
        standing, launch = found.standing, None if found.launch is None else found.launch.event
        if standing is not None and isinstance(launch, GroupLaunched):
            standing = standing.model_copy(update={"charter": launch.charter})
        return GoalStatus(record=found.record, standing=standing, result=found.result)

    async def count_waiting(self, goal: AnyGoal) -> int:
        """Count the goals of the same user that intake has not accepted."""
        queue = intake_consumer((await self._name(goal)).user)
        queues = (one for stream in (await self.standing()).streams if stream.name == GOALS for one in stream.queues)
        return sum(one.waiting for one in queues if one.name == queue)

    async def groups(
        self, *, limit: int = PAGE_GOALS, before: int | None = None, open_only: bool = False, owner: UserId | None = None
    ) -> GroupList:
        """List the groups of a page of goals, newest goal first, nested groups after their parents."""
        asked = reads.ListGroups(limit=min(limit, reads.MAX_LISTED), before=before, open_only=open_only, owner=owner)
        return await self._read(subjects.GROUPS_LIST, asked, GroupList)

    async def prune(self, request: Prune) -> Pruned:
        """Remove a part of the goals that ended long ago, as an admin; the reply contains the start of the next part."""
        return await self._operate(subjects.PRUNE, request, Pruned, timeout=_PRUNE_TIMEOUT)

    async def remove_agent(self, request: RemoveAgent) -> None:
        """Remove an agent, as an admin; `ConflictError` if the agent is online."""
        await self._operate(subjects.REMOVE_AGENT, request, Acknowledged)

    async def group(self, comm_id: CommId) -> GroupSnapshot:
        """Return one group with its charter, or raise `NotFoundError`."""
        return (await self._read(subjects.GROUPS_LIST, reads.ListGroups(comm_id=comm_id), GroupList)).groups[0]

    async def group_entries(
        self, comm_id: CommId, *, after: int = 0, before: int | None = None, limit: int | None = None, max_bytes: int | None = None
    ) -> Sequence[StoredEntry]:
        """Read the first entries of a group's log after a sequence, or the last entries before one; in order.

        Args:
            comm_id: The group.
            after: The first entries after this sequence, unless `before` is set.
            before: The last entries before this sequence.
            limit: Maximum number of entries.
            max_bytes: The entry that reaches this size is the last, or with `before` the first.
        """
        found, size, more = list[StoredEntry](), 0, True
        most, most_bytes = limit or sys.maxsize, max_bytes or sys.maxsize
        while more and len(found) < most and size < most_bytes:
            asked = reads.ReadLog(
                comm_id=comm_id,
                after=after,
                before=before,
                limit=min(most - len(found), reads.MAX_PAGE_ENTRIES),
                max_bytes=min(most_bytes - size, reads.MAX_LOG_PAGE_BYTES),
            )
            page = await self._read(subjects.LOG_PAGE, asked, reads.LogPage)
            entries = [read_entry(comm_id, StreamMessage(seq, "", data)) for seq, data in page.documents()]
            size, more = size + len(page.data), page.more
            if before is None:
                found = [*found, *entries]
                after = found[-1].seq if found else after
            else:
                found = [*entries, *found]
                before = found[0].seq if found else before
        return found

    async def heads(self, comm_ids: Sequence[CommId], *, at: int) -> Mapping[CommId, GroupSnapshot]:
        """Return the state of each group at a sequence, without charters; groups that were not open then are missing."""
        before = min(at, 2**63 - 2) + 1
        last = await together(*(self.group_entries(comm_id, before=before, limit=1) for comm_id in comm_ids))
        return {
            comm_id: GroupSnapshot(seq=stored.seq, state=stored.entry.state, charter=None)
            for comm_id, page in zip(comm_ids, last, strict=True)
            for stored in page
        }

    @asynccontextmanager
    async def listen(self, comm_id: CommId, listener: GroupListener) -> AsyncIterator[None]:
        """Report entries and progress of a goal's group, and of the groups nested in it, to a listener."""

        def take(message: Msg) -> None:
            if not message.data:
                listener.hint()
            elif (report := read_progress(message)) is not None:
                listener.report(report)

        subject = subjects.any_live((await self._reader()).owner or UserId("*"), comm_id)
        async with watching(self._client, subject, take, listener.look):
            listener.look()
            yield

    async def agents(self, *, online_only: bool = False) -> Sequence[AgentStatus]:
        """List all agents, by id."""
        return [one async for page in pages_of_agents(self.list_agents, online_only=online_only) for one in page.agents]

    async def list_agents(self, request: ListAgents) -> Agents:
        """List a page of agents."""
        return await self._status(subjects.LIST_AGENTS, request, Agents)

    async def find_agents(self, search: Search) -> SearchResult:
        """Search for agents."""
        return await self._ask(subjects.SEARCH, search, SearchResult, timeout=SEARCH_TIMEOUT)

    async def index_status(self) -> IndexStatus:
        """Return the state of discovery's index."""
        return await self._status(subjects.INDEX_STATUS, AskIndexStatus(), IndexStatus)

    async def upload(
        self, name: str, data: bytes | AsyncIterable[bytes], *, media_type: str | None = None, goal_id: str | None = None
    ) -> Artifact:
        """Store a file of the user, for the inputs of goals. The same name and `goal_id` again is the same file.

        It is removed with a goal that refers to it, or after a month. An iterator is never held in memory as a whole.

        Args:
            name: A plain file name.
            data: The content.
            media_type: Its type; None: guessed from the name.
            goal_id: Goal of the file, if it has an id.

        Raises:
            InvalidInputError: The name is not a plain file name.
            ConflictError: Another file is stored under this name and `goal_id`.
            OverQuotaError: The user's files would exceed the quota.
        """
        put = partial(self._put_piece, parse_goal_id(goal_id or RandomIds().new("upload")), name)
        return await put_data(name, data, media_type, put)

    def stream(self, artifact: Artifact, start: int = 0, stop: int | None = None) -> AsyncGenerator[bytes, None]:
        """Yield the bytes of a file from `start` to `stop`. The digest of a whole file is checked before the last piece.

        Raises:
            NotFoundError: No file is stored by this reference.
            InvalidInputError: The stored bytes differ from the reference.
        """

        async def get(after: int) -> file_requests.FilePiece:
            request = file_requests.GetFile(object_name=artifact.object_name, sha256=artifact.sha256, after=after)
            return await self._ask(subjects.GET_UPLOAD, request, file_requests.FilePiece, timeout=FILE_TIMEOUT)

        return file_requests.stream_in_pieces(artifact, get, start=start, stop=stop)

    async def fetch(self, artifact: Artifact, start: int = 0, stop: int | None = None) -> bytes:
        """Return the bytes of a file from `start` to `stop`; see `stream`."""
        return b"".join([piece async for piece in self.stream(artifact, start, stop)])

    async def stored(self) -> file_requests.StoredBytes:
        """Return the owners of most stored bytes."""
        return await self._status(subjects.STORED, file_requests.AskStored(), file_requests.StoredBytes)

    async def _put_piece(
        self, goal_id: GoalId, place: str, file: Announced, standing: file_requests.PutStanding | None, piece: bytes
    ) -> file_requests.Stored:
        request = file_requests.PutUpload(goal_id=goal_id, place=place, file=file, standing=standing, data=piece)
        return await self._ask(subjects.PUT_UPLOAD, request, file_requests.Stored, timeout=FILE_TIMEOUT)

    async def put_team(self, team: TeamSpec) -> NamedTeam:
        """Store a team under its name as the next version, unless it equals the newest version.

        Goals name it: `GoalOrder(goal=…, team="debate")`, or `"debate@3"` for one version. Later versions change no goal.
        An admin's version belongs to the user of the team's other versions.

        Raises:
            InvalidInputError: The name is not valid.
            ForbiddenError: The name is another user's.
            OverQuotaError: The user has too many teams.
        """
        user = await self.user()
        if user == ADMIN:
            user = next((row.user for row in await self.teams() if row.name == team.team), user)
        return await self._requester.request(subjects.user(user, subjects.PUT_TEAM), PutTeam(team=team), NamedTeam)

    async def team(self, name: str) -> NamedTeam:
        """Return the newest version of a team, or the version of `NAME@VERSION`; `NotFoundError` contains similar names."""
        reference = TeamReference.parse(name)
        return await self._ask(subjects.GET_TEAM, GetTeam(name=reference.name, version=reference.version), NamedTeam)

    async def teams(self) -> Sequence[TeamRow]:
        """List all teams by name, each with its newest version."""
        return (await self._ask(subjects.LIST_TEAMS, ListTeams(), TeamList)).teams

    async def dead_letters(self, *, limit: int, before: int | None = None) -> reads.DeadPage:
        """List the newest dead letters, or the newest before a number, without their messages."""
        return await self._read(subjects.DEAD_PAGE, reads.ReadDeadLetters(limit=limit, before=before), reads.DeadPage)

    async def dead_letter(self, seq: int) -> DeadLetter:
        """Return one dead letter with its message, or raise `NotFoundError`."""
        page = await self._read(subjects.DEAD_PAGE, reads.ReadDeadLetters(seq=seq), reads.DeadPage)
        for letter in page.letters:
            return letter.model_copy(update={"data": page.data})
        raise NotFoundError(f"There is no dead letter {seq}.", hint="`ioa dead` lists the dead letters.")

    async def retry_dead_letter(self, letter: DeadLetter) -> bool:
        """Publish the message again on its subject, and remove the letter; return False if an earlier call has published it.

        The message id contains the digest of the message, so that no other user can use the id before.

        Raises:
            InvalidInputError: The message is not of a queue, or was not stored whole.
            UnavailableError: A stream does not answer, or does not permit this credential.
        """
        letter.check_returnable()
        headers, js = {Header.MSG_ID.value: message_id(letter)}, self._client.jetstream()
        with unavailable_unless_answered("The stream of the message"):
            stored = await js.publish(letter.subject, letter.data, headers=headers)
        try:
            with unavailable_unless_answered("The dead-letter stream"):
                await js.delete_msg(DEAD, letter.seq)
        except UnavailableError as error:
            raise UnavailableError(
                f"The message is back on {letter.subject}, but its dead letter could not be removed: {error.message}",
                hint="Only an admin may remove it. A retry does not publish the message twice.",
            ) from error
        return not stored.duplicate

    async def standing(self) -> StoreStanding:
        """Return the state of JetStream: admins ask JetStream itself, also while group setup is away, others ask group setup."""
        if await self._known_user() in (ADMIN, LOCAL):
            return await read_standing(self._client)
        return await self._status(subjects.STANDING, AskStoreStanding(), StoreStanding)

    async def _name(self, goal: AnyGoal) -> GoalName:
        return goal if isinstance(goal, GoalName) else GoalName(await self.user(), parse_goal_id(goal))


def _no_goal(name: GoalName) -> NotFoundError:
    hint = "`ioa goals` lists the goals, except goals that wait until others of their user have ended."
    return NotFoundError(f"There is no goal {name}.", hint=hint)


def _removed(name: GoalName, outcome: str) -> NotFoundError:
    return NotFoundError(f"The goal {name} has ended ({outcome}) and was removed: only its id and outcome are kept.")


def message_id(letter: DeadLetter) -> str:
    """Return the id of a letter's message when it is published again."""
    return f"dead/{letter.seq}/{hashlib.sha256(letter.data).hexdigest()}"
