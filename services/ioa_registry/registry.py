"""Registering agents and keeping their leases. The buckets are the truth; this process may die at any time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import timedelta

from ioa.errors import NotFoundError
from ioa.ports.clock import Clock
from ioa.ports.delivery import MembershipChanges, Memberships, WorkQueue
from ioa.ports.group_log import GroupLog, StoredEntry
from ioa.ports.registry_store import CardRecord, CardStore, LeaseStore, RegistryView
from ioa.protocol.cards import AgentStatus, advice
from ioa.protocol.ids import AgentId, CommId
from ioa.protocol.registry import Acknowledged, Agents, Deregister, GetAgents, Lease, ListAgents, Register, Renew


@dataclass
class _Heads:
    """Heads of logs, read when the newest entry of all logs was `newest`. While it still is, nobody has to read them again."""

    newest: int
    by_group: dict[CommId, StoredEntry] = field(default_factory=dict)


class Registry:
    """Answer the requests of `ioa.v1.registry`."""

    def __init__(
        self,
        cards: CardStore,
        leases: LeaseStore,
        view: RegistryView,
        open_groups: MembershipChanges,
        memberships: Memberships,
        log: GroupLog,
        work: WorkQueue,
        clock: Clock,
        lease: timedelta,
        renew_every: timedelta,
    ) -> None:
        self._cards = cards
        self._leases = leases
        self._view = view
        self._open_groups = open_groups
        self._memberships = memberships
        self._log = log
        self._work = work
        self._clock = clock
        self._lease = lease
        self._renew_every = renew_every
        self._heads = _Heads(0)

    async def register(self, request: Register) -> Lease:
        """Store or update a card and give its agent a lease. Registering again changes nothing but what differs."""
        card = request.card
        known = await self._cards.get(card.agent_id)
        if known is None or known.card != card:
            registered_at = known.registered_at if known else self._clock.now()
            await self._cards.put(CardRecord(card=card, registered_at=registered_at))
        await self._work.ensure_pool(card.pool)
        await self._leases.renew(card.agent_id)
        return await self._answer(card.agent_id, {}, advice(card))

    async def renew(self, request: Renew) -> Lease:
        """Keep a lease, and tell where the agent's open groups stand.

        Raises:
            NotFoundError: The agent has never registered; it should now.
        """
        if self._view.card(request.agent_id) is None and await self._cards.get(request.agent_id) is None:
            raise NotFoundError(f"{request.agent_id} is not registered.", hint="Register first.")
        await self._leases.renew(request.agent_id, request.load)
        return await self._answer(request.agent_id, request.cursors, ())

    async def deregister(self, request: Deregister) -> Acknowledged:
        """Take an agent offline at once, without forgetting it."""
        await self._leases.release(request.agent_id)
        return Acknowledged()

    async def get(self, request: GetAgents) -> Agents:
        """Look agents up by id."""
        found = (self._view.card(agent_id) for agent_id in request.agent_ids)
        return Agents(agents=self._statuses([record for record in found if record is not None]))

    async def list(self, request: ListAgents) -> Agents:
        """List agents in the order of their ids, a page at a time."""
        chosen = [
            record
            for record in self._view.cards()
            if (request.after is None or record.card.agent_id > request.after)
            and (request.pool is None or record.card.pool == request.pool)
            and (not request.online_only or self._view.is_online(record.card.agent_id))
        ]
        return Agents(agents=self._statuses(chosen[: request.limit]))

    def _statuses(self, records: Sequence[CardRecord]) -> tuple[AgentStatus, ...]:
        return tuple(
            AgentStatus(
                card=record.card,
                online=self._view.is_online(record.card.agent_id),
                registered_at=record.registered_at,
                load=self._view.load(record.card.agent_id),
            )
            for record in records
        )

    async def _answer(self, agent_id: AgentId, cursors: dict[CommId, int], warnings: tuple[str, ...]) -> Lease:
        heads: dict[CommId, int] = {}
        groups = self._open_groups.groups_of(agent_id)
        known = await self._heads_of_now() if groups else self._heads
        for comm_id in groups:
            head = await self._head(known, agent_id, comm_id, cursors.get(comm_id, 0))
            if head is not None:
                heads[comm_id] = head
        return Lease(duration=self._lease, renew_every=self._renew_every, heads=heads, warnings=warnings)

    async def _heads_of_now(self) -> _Heads:
        """What was read of the logs and still holds: all of it, if nothing was appended to any log since."""
        newest = await self._log.newest()
        if newest != self._heads.newest:  # less than before, if a power cut cost the server its last writes
            self._heads = _Heads(newest)
        return self._heads

    async def _head(self, known: _Heads, agent_id: AgentId, comm_id: CommId, cursor: int) -> int | None:
        """The head of one group, 0 if it is about to be launched, None if it was launched without the agent.

        A group that ended with the agent's knowledge is open no more.
        """
        head = known.by_group.get(comm_id) or await self._log.last(comm_id)
        if head is None:
            return 0
        known.by_group[comm_id] = head
        is_member = head.entry.state.is_member(agent_id)
        if not is_member or (head.entry.state.phase.is_terminal and cursor >= head.seq):
            await self._memberships.remove(agent_id, comm_id)
        return head.seq if is_member else None
