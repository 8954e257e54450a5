"""Memberships and the index of what is open, in dictionaries."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ioa.adapters.nats.stores.open_group_store import NatsMemberships, NatsOpenGroups
from ioa.group.requests import OpenMembership, OpenMemberships
from ioa.protocol.ids import AgentId, CommId, UserId
from ioa.protocol.setup.open_groups import OpenGroup


class MemoryMemberships(NatsMemberships):
    """`Memberships` for unit tests. False in this: they are lost with the process."""

    def __init__(self) -> None:
        self._numbers: dict[tuple[AgentId, CommId], int] = {}
        self._last = 0

    async def add(self, agent_ids: Iterable[AgentId], comm_id: CommId) -> None:
        """Put agents into a group."""
        for agent_id in agent_ids:
            self._last += 1
            self._numbers.setdefault((agent_id, comm_id), self._last)

    async def remove(self, agent_id: AgentId, comm_id: CommId) -> None:
        """Forget a membership."""
        self._numbers.pop((agent_id, comm_id), None)

    async def remove_group(self, comm_id: CommId) -> None:
        """Forget the memberships of a group."""
        self._numbers = {key: number for key, number in self._numbers.items() if key[1] != comm_id}

    async def newest(self, agent_id: AgentId) -> int:
        """Return the highest number of the agent."""
        return max((number for (of, _), number in self._numbers.items() if of == agent_id), default=0)

    async def page(self, agent_id: AgentId, *, after: int, limit: int) -> OpenMemberships:
        """Return a page, by number."""
        numbered = sorted((number, comm_id) for (of, comm_id), number in self._numbers.items() if of == agent_id and number > after)
        found = tuple(OpenMembership(comm_id=comm_id, number=number) for number, comm_id in numbered[:limit])
        return OpenMemberships(memberships=found, complete=len(numbered) <= limit)

    async def list_groups(self, agent_id: AgentId) -> Sequence[CommId]:
        """All groups of an agent, by number."""
        return [one.comm_id for one in (await self.page(agent_id, after=0, limit=len(self._numbers))).memberships]

    def lose(self) -> None:
        """Lose everything."""
        self._numbers.clear()
        self._last = 0

    def agents(self) -> Sequence[AgentId]:
        """Everybody who is in a group, for a test to look at."""
        return sorted({agent_id for agent_id, _ in self._numbers})

    def comm_ids(self) -> Sequence[CommId]:
        """Every group that somebody is in, for a test to look at."""
        return sorted({comm_id for _, comm_id in self._numbers})

    def groups_of(self, agent_id: AgentId) -> Sequence[CommId]:
        """Return the groups of an agent, for a test to look at."""
        return sorted(comm_id for of, comm_id in self._numbers if of == agent_id)


class MemoryOpenGroups(NatsOpenGroups):
    """`OpenGroups` for unit tests. False in this: they are lost with the process."""

    def __init__(self) -> None:
        self._noted: dict[CommId, tuple[int, OpenGroup]] = {}
        self._last = 0

    async def add(self, user: UserId, comm_id: CommId, group: OpenGroup) -> bool:
        """Note a group, unless it is noted."""
        if comm_id in self._noted:
            return False
        await self.put(user, comm_id, group)
        return True

    async def put(self, user: UserId, comm_id: CommId, group: OpenGroup) -> None:
        """Note a group."""
        self._last += 1
        self._noted[comm_id] = self._last, group

    async def find(self, comm_id: CommId) -> OpenGroup | None:
        """Read what is noted of a group."""
        found = self._noted.get(comm_id)
        return found[1] if found else None

    async def remove(self, comm_id: CommId) -> None:
        """Forget a group."""
        self._noted.pop(comm_id, None)

    async def page(self, *, after: int, limit: int) -> tuple[Sequence[CommId], int | None]:
        """Return a page, in the order of putting."""
        numbered = sorted((number, comm_id) for comm_id, (number, _) in self._noted.items() if number > after)
        page = numbered[:limit]
        return [comm_id for _, comm_id in page], page[-1][0] if len(numbered) > limit else None

    def lose(self) -> None:
        """Lose everything."""
        self._noted.clear()
        self._last = 0

    def comm_ids(self) -> Sequence[CommId]:
        """Return what is open, for a test to look at."""
        return sorted(self._noted)
