"""The system as its users see it: launching goals, following them, looking at groups and agents."""

from __future__ import annotations

import asyncio
import mimetypes
from collections import deque
from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import nats.errors
import structlog
from nats.aio.client import Client

from ioa.adapters.nats.artifacts import NatsArtifacts
from ioa.adapters.nats.connection import NatsSettings, open_connection
from ioa.adapters.nats.dead_letters import NatsDeadLetterBox
from ioa.adapters.nats.delivery import NatsProgress, NatsResults
from ioa.adapters.nats.failures import unavailable_unless_answered
from ioa.adapters.nats.following import follow_subject
from ioa.adapters.nats.goals import NatsGoalRecords
from ioa.adapters.nats.listing import PAGE_GOALS, GoalList, GoalStatus, GroupList, Lists
from ioa.adapters.nats.log import NatsGroupLog
from ioa.adapters.nats.request_reply import NatsRequester
from ioa.adapters.nats.retention import NatsEndedGoals
from ioa.adapters.nats.topology import LOG, RESULTS
from ioa.adapters.system_clock import RandomIds
from ioa.errors import InvalidInputError, NotFoundError
from ioa.group.events import Entry, GroupLaunched, Said, SubgroupClosed, SubgroupOpened
from ioa.group.requests import CancelGroup, GetGroup, GroupSnapshot
from ioa.ports.group_log import StoredEntry
from ioa.protocol import subjects
from ioa.protocol.cards import AgentStatus
from ioa.protocol.codec import decode
from ioa.protocol.goal_order import GoalOrder, input_object_name
from ioa.protocol.goals import Artifact, GoalRecord, GoalResult, ending_of
from ioa.protocol.ids import AgentId, CommId, GoalId, comm_id_of_goal
from ioa.protocol.registry import Acknowledged, Agents, ListAgents, RemoveAgent
from ioa.protocol.results import decode_result
from ioa.protocol.retention import Prune, Pruned
from ioa.protocol.search import AskIndexStatus, IndexStatus, Search, SearchResult

_PAGE = 200
_PRUNE_TIMEOUT = timedelta(seconds=30)

_log = structlog.get_logger(__name__)


@dataclass(frozen=True)
class Roster:
    """All agents, by id, and what cannot be listed, each with the reason."""

    agents: Sequence[AgentStatus]
    skipped: Sequence[str]


class System:
    """Everything that people and programs outside the system may ask of it. Made by `open_system`."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._js = client.jetstream()
        self._requester = NatsRequester(client)
        self._log = NatsGroupLog(client)
        self._goals = NatsGoalRecords(self._js)
        self._results = NatsResults(self._js)
        self._progress = NatsProgress(client)
        self._artifacts = NatsArtifacts(self._js)
        self._ended = NatsEndedGoals(self._js)
        self._lists = Lists(client)
        self.dead_letters = NatsDeadLetterBox(self._js)

    async def launch(self, order: GoalOrder, files: Sequence[Path] = ()) -> GoalId:
        """Upload the files and publish the goal; returns when it is stored. Launching it again under its id is the same goal.

        Raises:
            InvalidInputError: A file cannot be read, or two have the same name.
            UnavailableError: The system does not take it.
        """
        goal_id = order.goal_id or GoalId(RandomIds().new("goal"))
        names = [file.name for file in files]
        if len(set(names)) != len(names):
            raise InvalidInputError("Two inputs have the same file name.", hint="Rename one of them.")
        stored = [await self._upload(goal_id, number, file) for number, file in enumerate(files)]
        complete = order.model_copy(update={"goal_id": goal_id, "inputs": (*order.inputs, *stored)})
        subject = subjects.goal_to(order.agent) if order.agent else subjects.GOAL
        with unavailable_unless_answered("The goal's stream"):
            await self._js.publish(subject, complete.model_dump_json(exclude_none=True).encode())
        return goal_id

    async def result(self, goal_id: GoalId) -> GoalResult | None:
        """Read a goal's result; None while it has none."""
        return await self._results.get(goal_id)

    async def wait_for_result(self, goal_id: GoalId) -> GoalResult:
        """Wait until the goal has ended, across outages.

        Raises:
            NotFoundError: It ended so long ago that it was removed.
        """
        await self._refuse_removed(goal_id)
        subject = subjects.result_of(goal_id)
        async with aclosing(follow_subject(self._client, RESULTS, subject)) as messages:
            async for message in messages:
                return decode_result(message.data)
        raise AssertionError("a stream is followed for ever")

    async def cancel(self, request: CancelGroup) -> None:
        """Cancel a goal or a group."""
        await self._requester.request(subjects.CANCEL, request, Acknowledged)

    async def goals(self, *, limit: int = PAGE_GOALS, before: int | None = None, open_only: bool = False) -> GoalList:
        """List goals on record, newest first, a page at a time; `before` is what the page before said."""
        return await self._lists.goals(limit=limit, before=before, open_only=open_only)

    async def find_goal(self, start: str) -> GoalId:
        """Complete the id of a goal from its beginning; of one that is not among the newest only a whole id is found.

        Raises:
            NotFoundError: No goal's id begins so.
            InvalidInputError: Several do.
        """
        return await self._lists.find_goal(start)

    async def find_group(self, start: str) -> CommId:
        """Complete the id of a group from its beginning; of one that is not among the newest only a whole id is found.

        Raises:
            NotFoundError: No group's id begins so.
            InvalidInputError: Several do.
        """
        return await self._lists.find_group(start)

    async def goal(self, goal_id: GoalId) -> GoalStatus:
        """Look at one goal.

        Raises:
            NotFoundError: There is no such goal.
        """
        record = await self._goals.find(comm_id_of_goal(goal_id))
        if record is None:
            await self._refuse_removed(goal_id)
            raise NotFoundError(f"There is no goal {goal_id}.", hint="`ioa goals` lists them.")
        return await self._status(record)

    async def groups(self, *, limit: int = PAGE_GOALS, before: int | None = None, open_only: bool = False) -> GroupList:
        """List the groups of goals on record, newest goal first, nested ones behind their parents, a page of goals at a time."""
        return await self._lists.groups(limit=limit, before=before, open_only=open_only)

    async def prune(self, request: Prune) -> Pruned:
        """Remove one part of the goals that ended long ago; the answer says where the next part begins. For operators.

        Raises:
            UnavailableError: Nobody answers, or who asks may not.
        """
        return await self._requester.request(subjects.PRUNE, request, Pruned, timeout=_PRUNE_TIMEOUT)

    async def remove_agent(self, request: RemoveAgent) -> None:
        """Forget an agent. For operators.

        Raises:
            NotFoundError: There is no such agent.
            ConflictError: It is online.
        """
        await self._requester.request(subjects.REMOVE_AGENT, request, Acknowledged)

    async def group(self, comm_id: CommId) -> GroupSnapshot:
        """Look at one group.

        Raises:
            NotFoundError: There is no such group.
        """
        return await self._requester.request(subjects.GET_GROUP, GetGroup(comm_id=comm_id), GroupSnapshot)

    async def entries(self, comm_id: CommId) -> list[StoredEntry]:
        """Read a group's whole log, in order."""
        entries: list[StoredEntry] = []
        while True:
            page = await self._log.read(comm_id, after=entries[-1].seq if entries else 0, limit=_PAGE)
            entries += page
            if len(page) < _PAGE:
                return entries

    async def conversation(self, comm_id: CommId) -> list[StoredEntry]:
        """Read the logs of a group and of its nested teams, in the order in which everything happened."""
        entries = await self.entries(comm_id)
        for stored in list(entries):
            if isinstance(stored.entry.event, SubgroupOpened):
                entries += await self.conversation(stored.entry.event.subgroup)
        return sorted(entries, key=lambda stored: stored.seq)

    @asynccontextmanager
    async def watch(self, comm_id: CommId) -> AsyncIterator[AsyncIterator[StoredEntry | Said]]:
        """Open the view of a group and its nested teams: every entry from the first on, as they come, until the group has ended.

        The group need not exist yet. Each log comes in its order; a nested team's entries come between its parent's. Reports of
        progress that are no entries come as they are heard, from now on.
        """
        arrived: asyncio.Queue[StoredEntry | Said] = asyncio.Queue()
        async with asyncio.TaskGroup() as group:
            watchers: dict[CommId, asyncio.Task[None]] = {}

            def watch_also(other: CommId) -> None:
                if other not in watchers:
                    watchers[other] = group.create_task(self._watch_one(other, arrived))

            async def entries() -> AsyncIterator[StoredEntry | Said]:
                order, state = _CausalOrder(), None
                while state is None or not (state.comm_id == comm_id and state.phase.is_terminal):
                    one = await arrived.get()
                    if isinstance(one, Said):
                        yield one
                        continue
                    for stored in order.put(one):
                        if isinstance(stored.entry.event, SubgroupOpened):
                            watch_also(stored.entry.event.subgroup)
                        yield stored
                        state = stored.entry.state if stored.entry.state.comm_id == comm_id else state

            watch_also(comm_id)
            try:
                yield entries()
            finally:
                for watcher in watchers.values():
                    watcher.cancel()

    async def agents(self, *, online_only: bool = False) -> Sequence[AgentStatus]:
        """List all agents, by id."""
        return (await self.roster(online_only=online_only)).agents

    async def roster(self, *, online_only: bool = False) -> Roster:
        """List all agents, by id, and what keeps others off the list."""
        agents: list[AgentStatus] = []
        skipped: list[str] = []
        after: AgentId | None = None
        while True:
            request = ListAgents(online_only=online_only, after=after, limit=_PAGE)
            answer = await self._requester.request(subjects.LIST_AGENTS, request, Agents)
            agents += answer.agents
            if answer.left_out:
                _log.warning("agents_not_listed", why="their cards are too large", agent_ids=answer.left_out)
            skipped += [*answer.unreadable, *(f"{agent_id}: Its card is too large to be shown." for agent_id in answer.left_out)]
            # A registry of an older version says nothing of more, and fills its pages by number.
            if not answer.agents or not (answer.more or len(answer.agents) >= _PAGE):
                return Roster(agents, skipped)
            after = answer.agents[-1].card.agent_id

    async def search(self, search: Search) -> SearchResult:
        """Ask discovery."""
        return await self._requester.request(subjects.SEARCH, search, SearchResult, timeout=timedelta(seconds=15))

    async def index_status(self) -> IndexStatus:
        """Ask how discovery's index stands."""
        return await self._requester.request(subjects.INDEX_STATUS, AskIndexStatus(), IndexStatus)

    async def fetch(self, artifact: Artifact) -> bytes:
        """Fetch a file a goal produced."""
        return await self._artifacts.get(artifact)

    async def answers(self, service: str) -> bool:
        """Whether a service, such as `ioa-router`, answers a ping (NATS ADR-32)."""
        try:
            await self._client.request(f"$SRV.PING.{service}", b"", timeout=1)
        except (nats.errors.Error, TimeoutError, OSError):
            return False
        return True

    async def _status(self, record: GoalRecord) -> GoalStatus:
        comm_id = comm_id_of_goal(record.goal.goal_id)
        head = await self._log.last(comm_id)
        standing = None
        if head is not None:
            first = await self._log.read(comm_id, after=0, limit=1)
            event = first[0].entry.event if first else None
            charter = event.charter if isinstance(event, GroupLaunched) else None
            standing = GroupSnapshot(seq=head.seq, state=head.entry.state, charter=charter)
        return GoalStatus(record, standing, await self._results.get(record.goal.goal_id))

    async def _refuse_removed(self, goal_id: GoalId) -> None:
        ending = ending_of(await self._ended.find(goal_id))
        if ending is not None:
            raise NotFoundError(f"The goal {goal_id} has ended ({ending}) and was removed: nothing else is kept of it.")

    async def _watch_one(self, comm_id: CommId, arrived: asyncio.Queue[StoredEntry | Said]) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(self._progress.follow(arrived.put_nowait, lambda: None, subjects.progress(comm_id)))
            async with aclosing(follow_subject(self._client, LOG, subjects.log(comm_id))) as messages:
                async for message in messages:
                    arrived.put_nowait(StoredEntry(message.seq, decode(Entry, message.data)))

    async def _upload(self, goal_id: GoalId, number: int, file: Path) -> Artifact:
        try:
            data = await asyncio.to_thread(file.read_bytes)
        except OSError as error:
            raise InvalidInputError(f"The input {file} cannot be read: {error.strerror}.") from None
        media_type = mimetypes.guess_type(file.name)[0] or "application/octet-stream"
        return await self._artifacts.put(input_object_name(goal_id, number, file.name), file.name, data, media_type)


class _CausalOrder:
    """Put the entries of several logs into an order in which a nested team's end comes before its parent hears of it."""

    def __init__(self) -> None:
        self._held: dict[CommId, deque[StoredEntry]] = {}
        self._ended: set[CommId] = set()

    def put(self, stored: StoredEntry) -> list[StoredEntry]:
        """Take an entry, the next of its log, and return all that may be shown now."""
        self._held.setdefault(stored.entry.state.comm_id, deque()).append(stored)
        free: list[StoredEntry] = []
        while queue := next((queue for queue in self._held.values() if queue and self._is_free(queue[0])), None):
            entry = queue.popleft()
            if entry.entry.state.phase.is_terminal:
                self._ended.add(entry.entry.state.comm_id)
            free.append(entry)
        return free

    def _is_free(self, stored: StoredEntry) -> bool:
        return not isinstance(stored.entry.event, SubgroupClosed) or stored.entry.event.subgroup in self._ended


@asynccontextmanager
async def open_system(settings: NatsSettings, *, patience: timedelta) -> AsyncIterator[System]:
    """Connect to a running system.

    Raises:
        UnavailableError: No NATS server answers within `patience`.
    """
    async with open_connection(settings, patience=patience) as client:
        yield System(client)
