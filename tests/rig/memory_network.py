"""The in-memory control plane as agents see it whose clock, network and neighbours a test decides about."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import timedelta

from ioa.errors import UnavailableError
from ioa.group.requests import CancelGroup, SequencedEntry
from ioa.ports.group_log import StoredEntry
from ioa.protocol.goals import Goal, GoalRecord, GoalResult
from ioa.protocol.ids import LOCAL, AgentId, CommId, GoalName, PoolId, comm_id_of_goal
from ioa.protocol.load import Load
from ioa.protocol.tickets import digest_of_ticket
from ioa.testing.manual_clock import ManualClock
from tests.rig.memory_plane import MemoryControlPlane, Push
from tests.rig.plane_network import PlaneNetwork


class MemoryNetwork(PlaneNetwork):
    """An `AgentNetwork` whose decisions are those of the real services, and whose faults and clock are a test's.

    False in this: nothing is durable, time passes only when the clock is moved, and discovery finds everybody who is online, as
    similar to every need as `discovery.similarity` says.

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
        super().__init__(MemoryControlPlane(clock, renew_every=renew_every, task_lease=task_lease))
        self.clock = clock
        self.log, self.results, self.artifacts = self.plane.log, self.plane.results, self.plane.artifacts
        self.progress, self.outcomes = self.plane.progress, self.plane.outcomes
        self.discovery = self.plane.discovery
        self.reachable = True
        """Set to False, no request is answered until it is set to True again."""

    def deliver_pushes(self, push: Push) -> None:
        """Decide what becomes of each push from now on."""
        self.plane.inboxes.push_as = push

    async def offer(self, goal: Goal) -> CommId:
        """Put a goal on record and offer it to the pool it names, or to anybody."""
        ticket = await self.plane.tickets.of(GoalName(LOCAL, goal.goal_id))
        accepting = GoalRecord(goal=goal, accepted_at=self.clock.now(), ticket_digest=digest_of_ticket(ticket))
        record = await self.plane.goals.create(accepting)
        await self.plane.work.put(record, PoolId(goal.agent) if goal.agent else None, ticket)
        return comm_id_of_goal(goal.goal_id)

    async def entries(self, comm_id: CommId) -> Sequence[StoredEntry]:
        """Return a group's whole log."""
        return await self.log.read(comm_id, after=0, limit=10_000)

    async def result(self, goal: Goal) -> GoalResult | None:
        """Return a goal's result."""
        return await self.results.get(GoalName(LOCAL, goal.goal_id))

    def is_online(self, agent_id: AgentId) -> bool:
        """Whether an agent's lease stands."""
        return self.plane.view.is_online(agent_id)

    def load(self, agent_id: AgentId) -> Load:
        """How busy an agent said it was."""
        return self.plane.view.load(agent_id)

    def open_groups(self, agent_id: AgentId) -> Sequence[CommId]:
        """Return the groups an agent is in and has not been seen to know the end of."""
        return self.plane.memberships.groups_of(agent_id)

    async def push_to(self, agent_id: AgentId, entry: SequencedEntry) -> None:
        """Show an agent an entry that nobody recorded for it."""
        self.plane.inboxes.deliver(agent_id, entry)

    async def cancel(self, comm_id: CommId) -> None:
        """Cancel a group as a user would."""
        await self.plane.setup.cancel(LOCAL, CancelGroup(comm_id=comm_id))

    async def advance(self, by: timedelta) -> None:
        """Let time pass and have the router look at every deadline that has come."""
        self.clock.advance(by)
        await self.plane.fire_due()

    def end_lease(self, agent_id: AgentId) -> None:
        """Let the lease of an agent whose process died be over, without waiting for it."""
        self.plane.leases.forget(agent_id)

    def renew_connections(self) -> None:
        """Tell every agent that its connection was renewed."""
        for listener in list(self._listeners):
            listener()

    def lose_everything(self, *, restored: bool = False) -> None:
        """Come back as a server does whose store is empty, or was saved when it was empty. What agents hold stays."""
        self.log.lose(restored=restored)
        self.results.lose()
        self.plane.goals.lose()
        self.plane.memberships.lose()
        self.plane.open_groups.lose()
        self.plane.ledgers[0].forget()
        self.plane.registry.forget_epoch()
        self.renew_connections()

    async def _arrive(self) -> None:
        await asyncio.sleep(0)
        if not self.reachable:
            raise UnavailableError("Nobody answers.")
