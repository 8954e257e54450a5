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

from ioa.adapters.nats_artifacts import NatsArtifacts
from ioa.adapters.nats_connection import NatsSettings, open_connection
from ioa.adapters.nats_delivery import NatsResults
from ioa.adapters.nats_failures import unavailable_unless_answered
from ioa.adapters.nats_following import follow_subject
from ioa.adapters.nats_goals import NatsGoalRecords
from ioa.adapters.nats_log import NatsGroupLog
from ioa.adapters.nats_requests import NatsRequester
from ioa.adapters.nats_topology import LOG, RESULTS
from ioa.adapters.system_clock import RandomIds
from ioa.errors import InvalidInputError, NotFoundError
from ioa.group.events import Entry, GroupLaunched, SubgroupClosed, SubgroupOpened
from ioa.group.requests import CancelGroup, GetGroup, GroupStanding
from ioa.ports.group_log import StoredEntry
from ioa.protocol import subjects
from ioa.protocol.cards import AgentStatus
from ioa.protocol.codec import decode
from ioa.protocol.goal_order import GoalOrder, input_object_name
from ioa.protocol.goals import Artifact, GoalRecord, GoalResult
from ioa.protocol.ids import AgentId, CommId, GoalId, comm_id_of_goal
from ioa.protocol.registry import Acknowledged, Agents, ListAgents
from ioa.protocol.search import AskIndexStatus, IndexStatus, Search, SearchResult

_PAGE = 200

_log = structlog.get_logger(__name__)


@dataclass(frozen=True)
class GoalStatus:
    """A goal, the group that works for it if one was opened, and its result if it has ended."""

    record: GoalRecord
    standing: GroupStanding | None
    result: GoalResult | None


class System:
    """Everything that people and programs outside the system may ask of it. Made by `open_system`."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._js = client.jetstream()
        self._requester = NatsRequester(client)
        self._log = NatsGroupLog(client)
        self._goals = NatsGoalRecords(self._js)
        self._results = NatsResults(self._js)
        self._artifacts = NatsArtifacts(self._js)

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
        """Wait until the goal has ended, across outages."""
        subject = subjects.result_of(goal_id)
        async with aclosing(follow_subject(self._client, RESULTS, subject)) as messages:
            async for message in messages:
                return decode(GoalResult, message.data)
        raise AssertionError("a stream is followed for ever")

    async def cancel(self, request: CancelGroup) -> None:
        """Cancel a goal or a group."""
        await self._requester.request(subjects.CANCEL, request, Acknowledged)

    async def goals(self) -> list[GoalStatus]:
        """List all goals on record, oldest first."""
        return [await self._status(record) for record in await self._goals.goals()]

    async def find_goal(self, start: str) -> GoalId:
        """Complete the id of a goal from its beginning.

        Raises:
            NotFoundError: No goal's id begins so.
            InvalidInputError: Several do.
        """
        known = [record.goal.goal_id for record in await self._goals.goals()]
        return GoalId(_only("goal", start, known))

    async def find_group(self, start: str) -> CommId:
        """Complete the id of a group from its beginning.

        Raises:
            NotFoundError: No group's id begins so.
            InvalidInputError: Several do.
        """
        return CommId(_only("group", start, await self._log.comm_ids()))

    async def goal(self, goal_id: GoalId) -> GoalStatus:
        """Look at one goal.

        Raises:
            NotFoundError: There is no such goal.
        """
        record = await self._goals.find(comm_id_of_goal(goal_id))
        if record is None:
            raise NotFoundError(f"There is no goal {goal_id}.", hint="`ioa goals` lists them.")
        return await self._status(record)

    async def groups(self) -> list[GroupStanding]:
        """List all groups, nested ones too, in the order they were last heard of."""
        found = [await self.group(comm_id) for comm_id in await self._log.comm_ids()]
        return sorted(found, key=lambda standing: standing.seq)

    async def group(self, comm_id: CommId) -> GroupStanding:
        """Look at one group.

        Raises:
            NotFoundError: There is no such group.
        """
        return await self._requester.request(subjects.GET_GROUP, GetGroup(comm_id=comm_id), GroupStanding)

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
    async def watch(self, comm_id: CommId) -> AsyncIterator[AsyncIterator[StoredEntry]]:
        """Open the view of a group and its nested teams: every entry from the first on, as they come, until the group has ended.

        The group need not exist yet. Each log comes in its order; a nested team's entries come between its parent's.
        """
        arrived: asyncio.Queue[StoredEntry] = asyncio.Queue()
        async with asyncio.TaskGroup() as group:
            watchers: dict[CommId, asyncio.Task[None]] = {}

            def watch_also(other: CommId) -> None:
                if other not in watchers:
                    watchers[other] = group.create_task(self._watch_one(other, arrived))

            async def entries() -> AsyncIterator[StoredEntry]:
                order, state = _CausalOrder(), None
                while state is None or not (state.comm_id == comm_id and state.phase.is_terminal):
                    for stored in order.put(await arrived.get()):
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

    async def agents(self, *, online_only: bool = False) -> list[AgentStatus]:
        """List all agents, by id."""
        agents: list[AgentStatus] = []
        after: AgentId | None = None
        while True:
            request = ListAgents(online_only=online_only, after=after, limit=_PAGE)
            page = (await self._requester.request(subjects.LIST_AGENTS, request, Agents)).agents
            agents += page
            if len(page) < _PAGE:
                return agents
            after = page[-1].card.agent_id

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
            standing = GroupStanding(seq=head.seq, state=head.entry.state, charter=charter)
        return GoalStatus(record, standing, await self._results.get(record.goal.goal_id))

    async def _watch_one(self, comm_id: CommId, arrived: asyncio.Queue[StoredEntry]) -> None:
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


def _only(what: str, start: str, known: Sequence[str]) -> str:
    if start in known:
        return start
    found = [one for one in known if one.startswith(start)]
    if not found:
        raise NotFoundError(f"There is no {what} {start}.", hint=f"`ioa {what}s` lists them.")
    if len(found) > 1:
        raise InvalidInputError(f"{len(found)} {what}s begin with {start}.", hint=f"Write more of it: {', '.join(found[:4])}.")
    return found[0]


@asynccontextmanager
async def open_system(settings: NatsSettings, *, patience: timedelta) -> AsyncIterator[System]:
    """Connect to a running system.

    Raises:
        UnavailableError: No NATS server answers within `patience`.
    """
    async with open_connection(settings, patience=patience) as client:
        yield System(client)
