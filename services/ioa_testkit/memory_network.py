"""The whole control plane in one object: the real registry, group setup and router over logs and queues in memory."""

from __future__ import annotations

import asyncio
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import replace
from datetime import timedelta

from ioa.adapters.nats.queues import MAX_FAILURES
from ioa.errors import UnavailableError
from ioa.group.events import EncodedEntry
from ioa.group.requests import (
    AbandonGoal,
    Accepted,
    CancelGroup,
    Entries,
    GroupSnapshot,
    LaunchGroup,
    ListMemberships,
    OpenMemberships,
    Rejected,
    SayReply,
    SequencedEntry,
    Sync,
)
from ioa.ports.agent_network import GoalLeader, GoalOffer
from ioa.ports.group_log import StoredEntry
from ioa.protocol import subjects
from ioa.protocol.cards import AgentCard
from ioa.protocol.codec import MAX_MESSAGE_BYTES, decode, encode
from ioa.protocol.goals import Artifact, Goal, GoalRecord, GoalResult
from ioa.protocol.ids import AgentId, CommId, GoalId, PoolId, comm_id_of_goal
from ioa.protocol.load import Load
from ioa.protocol.messages import Message
from ioa.protocol.outcomes import ReportOutcomes
from ioa.protocol.registry import Deregister, Lease, Register, Renew
from ioa.protocol.search import Hit, NeedHits, Search, SearchResult
from ioa.runtime.endings import Endings
from ioa.runtime.ledger import GroupLedger
from ioa.testing.manual_clock import ManualClock
from ioa.testing.memory_artifacts import MemoryArtifacts
from ioa.testing.memory_delivery import MemoryProgress, MemoryResults, MemoryTimers
from ioa.testing.memory_goals import MemoryGoalRecords, MemoryWorkQueue
from ioa.testing.memory_log import MemoryGroupLog
from ioa.testing.memory_open_groups import MemoryMemberships, MemoryOpenGroups
from ioa.testing.memory_outcomes import MemoryOutcomes
from ioa.testing.memory_registry import MemoryCards, MemoryLeases, MemoryRegistryView, MemorySessions
from ioa.testing.memory_retention import MemoryEndedGoals
from ioa_discovery.assessment import Assessor
from ioa_groups.setup import GroupSetup, GroupTimeouts
from ioa_registry.registry import Registry
from ioa_router.router import Router

Push = Callable[[AgentId, SequencedEntry], Sequence[SequencedEntry]]
"""What becomes of one push: what arrives instead of it, such as nothing, or the same twice."""

_LEASE = timedelta(hours=1)


class _Inboxes:
    """Pushes that go to whoever listens now."""

    def __init__(self) -> None:
        self.push_as: Push = lambda _, entry: [entry]
        self._open: dict[AgentId, list[asyncio.Queue[SequencedEntry]]] = defaultdict(list)

    async def push(self, audience: Sequence[AgentId], entry: EncodedEntry, *, seq: int, previous_seq: int) -> None:
        for agent_id in audience:
            self.deliver(agent_id, SequencedEntry(seq=seq, previous_seq=previous_seq, entry=entry.entry))

    def deliver(self, agent_id: AgentId, entry: SequencedEntry) -> None:
        for arriving in self.push_as(agent_id, entry):
            for inbox in self._open[agent_id]:
                inbox.put_nowait(arriving)

    @asynccontextmanager
    async def open(self, agent_id: AgentId) -> AsyncIterator[AsyncIterator[SequencedEntry]]:
        arrived: asyncio.Queue[SequencedEntry] = asyncio.Queue()
        self._open[agent_id].append(arrived)

        async def entries() -> AsyncIterator[SequencedEntry]:
            while True:
                yield await arrived.get()

        try:
            yield entries()
        finally:
            self._open[agent_id].remove(arrived)


class MemoryNetwork:
    """An `AgentNetwork` for any number of agents, whose decisions are those of the real services.

    False in this: nothing is durable, time passes only when the clock is moved, and discovery finds everybody who is online, as
    similar to every need as `similarity` says.

    Args:
        clock: Decides when leases, floors and pauses run out; move it with `advance`.
    """

    def __init__(
        self,
        clock: ManualClock,
        *,
        renew_every: timedelta = timedelta(milliseconds=50),
        task_lease: timedelta = timedelta(seconds=30),
    ) -> None:
        self.clock = clock
        self.log = MemoryGroupLog()
        self.results = MemoryResults()
        self.artifacts = MemoryArtifacts()
        self.similarity: Callable[[str, AgentCard], float] = lambda need, card: 0.9
        self.reachable = True
        """Set to False, no request is answered until it is set to True again."""
        self.said: list[Message] = []
        """Every message that reached the router, repeated ones too."""
        self.offered: list[tuple[Goal, Exception]] = []
        """Goals whose lead raised, each with the error, so that they were offered again."""
        self._inboxes = _Inboxes()
        self._goals: dict[PoolId | None, asyncio.Queue[GoalOffer]] = defaultdict(asyncio.Queue)
        self._records = MemoryGoalRecords()
        self._timers = MemoryTimers(clock)
        self._listeners: list[Callable[[], None]] = []
        cards, leases = MemoryCards(), MemoryLeases(clock, _LEASE)
        self._leases = leases
        self._memberships, self._open = MemoryMemberships(), MemoryOpenGroups()
        self._view, sessions = MemoryRegistryView(cards, leases), MemorySessions()
        ledger = self._ledger = GroupLedger(self.log, self._timers, self._inboxes, self.results, self._open, clock)
        endings = Endings(self.results, MemoryEndedGoals())
        timeouts = GroupTimeouts(3, timedelta(minutes=1), task_lease, timedelta(minutes=10), timedelta(minutes=1))
        self._setup = GroupSetup(
            ledger, self.log, self._records, self._view, self._memberships, self._open, endings, clock, timeouts, sessions
        )
        self.progress = MemoryProgress()
        self._router = Router(ledger, self._records, self._open, self._timers, self.progress, endings, clock, sessions)
        self.outcomes = MemoryOutcomes()
        self._assessor = Assessor(self.log, self._view, self.outcomes, clock, sessions)
        self._registry = Registry(
            cards, leases, sessions, self._view, self._memberships, self.log, MemoryWorkQueue(), clock, _LEASE, renew_every
        )

    def deliver_pushes(self, push: Push) -> None:
        """Decide what becomes of each push from now on."""
        self._inboxes.push_as = push

    async def offer(self, goal: Goal) -> CommId:
        """Put a goal on record and offer it to the pool it names, or to anybody."""
        record = await self._records.create(GoalRecord(goal=goal, accepted_at=self.clock.now()))
        self._goals[PoolId(goal.agent) if goal.agent else None].put_nowait(GoalOffer(goal, record.deadline, 1))
        return comm_id_of_goal(goal.goal_id)

    async def entries(self, comm_id: CommId) -> Sequence[StoredEntry]:
        """Return a group's whole log."""
        return await self.log.read(comm_id, after=0, limit=10_000)

    async def result(self, goal: Goal) -> GoalResult | None:
        """Return a goal's result."""
        return await self.results.get(goal.goal_id)

    def is_online(self, agent_id: AgentId) -> bool:
        """Whether an agent's lease stands."""
        return self._view.is_online(agent_id)

    def load(self, agent_id: AgentId) -> Load:
        """How busy an agent said it was."""
        return self._view.load(agent_id)

    def open_groups(self, agent_id: AgentId) -> Sequence[CommId]:
        """Return the groups an agent is in and has not been seen to know the end of."""
        return self._memberships.groups_of(agent_id)

    async def put_into(self, agent_id: AgentId, comm_id: CommId) -> None:
        """Put an agent into a group, whether it was launched or not."""
        await self._memberships.add((agent_id,), comm_id)

    async def push_to(self, agent_id: AgentId, entry: SequencedEntry) -> None:
        """Show an agent an entry that nobody recorded for it."""
        self._inboxes.deliver(agent_id, entry)

    async def cancel(self, comm_id: CommId) -> None:
        """Cancel a group as a user would."""
        await self._setup.cancel(CancelGroup(comm_id=comm_id))

    async def advance(self, by: timedelta) -> None:
        """Let time pass and have the router look at every deadline that has come."""
        self.clock.advance(by)
        for comm_id in self._timers.take_due():
            await self._router.fire_timer(comm_id)

    async def register(self, request: Register) -> Lease:
        """Store the card and take a lease."""
        await self._arrive()
        return await self._registry.register(request)

    async def renew(self, request: Renew) -> Lease:
        """Keep the lease."""
        await self._arrive()
        return await self._registry.renew(request)

    async def deregister(self, request: Deregister) -> None:
        """Go offline."""
        await self._arrive()
        await self._registry.deregister(request)

    async def search(self, search: Search) -> SearchResult:
        """Find everybody who is online, the most similar first."""
        await self._arrive()
        online = [record.card for record in self._view.cards() if self._view.is_online(record.card.agent_id)]
        by_need = []
        for need in search.needs:
            hits = [
                Hit(card=card, score=self.similarity(need.text, card), similarity=self.similarity(need.text, card))
                for card in online
            ]
            by_need.append(NeedHits(need=need, hits=tuple(sorted(hits, key=lambda hit: -hit.similarity))))
        return SearchResult(by_need=tuple(by_need), merged=by_need[0].hits)

    async def report_outcomes(self, request: ReportOutcomes) -> None:
        """Have discovery confirm and keep how tasks went."""
        await self._arrive()
        await self._assessor.report(request)

    async def launch(self, request: LaunchGroup) -> GroupSnapshot:
        """Open a group."""
        await self._arrive()
        return await self._setup.launch(request)

    async def abandon(self, request: AbandonGoal) -> None:
        """End a goal for which no group can be opened."""
        await self._arrive()
        await self._setup.abandon(request)

    async def memberships(self, request: ListMemberships) -> OpenMemberships:
        """Ask which groups the agent was put into."""
        await self._arrive()
        return await self._setup.memberships(request)

    async def sync(self, request: Sync) -> Entries:
        """Fetch a page of a group's log."""
        await self._arrive()
        return await self._setup.sync(request)

    async def say(self, message: Message) -> Accepted | Rejected:
        """Have the router decide about a message."""
        await self._arrive()
        self.said.append(message)
        data, sender = encode(message, max_payload_bytes=MAX_MESSAGE_BYTES), message.header.sender
        answer = decode(SayReply, await self._router.say(subjects.say(message.header.comm_id, sender), data)).answer
        if isinstance(answer, Accepted) and answer.entry is not None:
            self._inboxes.deliver(sender, answer.entry)
        return answer

    @asynccontextmanager
    async def inbox(self, agent_id: AgentId) -> AsyncIterator[AsyncIterator[SequencedEntry]]:
        """Open an agent's live view."""
        async with self._inboxes.open(agent_id) as entries:
            yield entries

    @contextmanager
    def at_renewal(self, listener: Callable[[], None]) -> Iterator[None]:
        """Listen for `renew_connections`."""
        self._listeners.append(listener)
        try:
            yield
        finally:
            self._listeners.remove(listener)

    def end_lease(self, agent_id: AgentId) -> None:
        """Let the lease of an agent whose process died be over, without waiting for it."""
        self._leases.forget(agent_id)

    def renew_connections(self) -> None:
        """Tell every agent that its connection was renewed."""
        for listener in list(self._listeners):
            listener()

    def lose_everything(self, *, restored: bool = False) -> None:
        """Come back as a server does whose store is empty, or was saved when it was empty. What agents hold stays."""
        self.log.lose(restored=restored)
        self.results.lose()
        self._records.lose()
        self._memberships.lose()
        self._open.lose()
        self._ledger.forget()
        self._registry.forget_epoch()
        self.renew_connections()

    async def take_goals(self, agent_id: AgentId, pool: PoolId, leader: GoalLeader, *, side_by_side: int) -> None:
        """Lead goals, one of the pool and one of anybody's at a time.

        One whose lead raises is offered again at once, and is given up after five errors that are no outage.
        """
        async with asyncio.TaskGroup() as group:
            for queue in (self._goals[pool], self._goals[None]):
                group.create_task(self._take_goals(queue, leader))

    async def _take_goals(self, queue: asyncio.Queue[GoalOffer], leader: GoalLeader) -> None:
        failures: Counter[GoalId] = Counter()
        while True:
            offer = await queue.get()
            again = replace(offer, attempt=offer.attempt + 1)
            if offer.deadline is not None and offer.deadline <= self.clock.now():
                continue
            try:
                await leader.lead(offer)
            except asyncio.CancelledError:
                queue.put_nowait(again)
                raise
            except Exception as error:
                self.offered.append((offer.goal, error))
                failures[offer.goal.goal_id] += not isinstance(error, UnavailableError)
                if failures[offer.goal.goal_id] >= MAX_FAILURES:
                    await leader.give_up(offer, str(error))
                else:
                    queue.put_nowait(again)
                await asyncio.sleep(0)

    async def put_file(self, object_name: str, name: str, data: bytes, media_type: str) -> Artifact:
        """Store a file."""
        await self._arrive()
        return await self.artifacts.put(object_name, name, data, media_type)

    async def get_file(self, artifact: Artifact) -> bytes:
        """Fetch a file."""
        await self._arrive()
        return await self.artifacts.get(artifact)

    async def _arrive(self) -> None:
        await asyncio.sleep(0)
        if not self.reachable:
            raise UnavailableError("Nobody answers.")
