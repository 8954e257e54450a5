"""Who was rightly told of a file: by who wrote it, by its goal, or by somebody who had been told of it before.

A reference is not a secret that opens a file: whoever learned one elsewhere could name it in an entry of its own, and so have the
file told to itself or to an accomplice. What an entry names opens a file only if the way by which it came there can be followed.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass

from ioa.group.events import GroupLaunched, Said, SubgroupClosed, files_of
from ioa.group.state import Charter
from ioa.ports.group_log import GroupLog, StoredEntry
from ioa.protocol.ids import AgentId, CommId, GoalName, comm_id_of_task

_PAGE = 256


def owner_of(agent_id: AgentId) -> str:
    """Return how the store calls an agent whose files they are."""
    return f"agent-{agent_id}"


@dataclass(frozen=True)
class Provenance:
    """The way of one file through the groups of its goal.

    Sequences rise over all logs, and only what comes before an entry is asked about it, so that every way ends.

    Attributes:
        log: Where it is followed.
        object_name: Which file.
        sha256: What it holds.
        owner: Whose it is, as the store says.
    """

    log: GroupLog
    object_name: str
    sha256: str
    owner: str

    async def may_read(self, agent_id: AgentId, comm_id: CommId, by: StoredEntry) -> bool:
        """Whether an agent may read the file since an entry, which names it, was told to the agent."""
        if self.owner == owner_of(agent_id) or await self._is_right(comm_id, by, frozenset()):
            return True
        return agent_id in await self._knowing(comm_id, before=by.seq + 1)

    async def _knowing(self, comm_id: CommId, *, before: int) -> frozenset[AgentId]:
        """Return who was rightly told of the file in a group by then."""
        knowing = frozenset[AgentId]()
        async for one in self._entries(comm_id, before):
            if self._is_named(one) and await self._is_right(comm_id, one, knowing):
                knowing |= frozenset(one.entry.audience)
        return knowing

    async def _is_right(self, comm_id: CommId, by: StoredEntry, knowing: frozenset[AgentId]) -> bool:
        """Whether an entry may name the file, where some know of it already."""
        match by.entry.event:
            case Said(message=message):
                teller = message.header.sender
                return self.owner == owner_of(teller) or teller in knowing or await self._is_copied(comm_id, by)
            case SubgroupClosed(subgroup=subgroup):
                return bool(await self._knowing(subgroup, before=by.seq))
            case GroupLaunched(charter=charter):
                return await self._is_given(charter, by.seq)
            case _:
                return False

    async def _is_given(self, charter: Charter, seq: int) -> bool:
        """Whether a group was rightly given the file: a goal's by its user, who reads all; a nested team's by who opened it."""
        if charter.parent is None:
            return True
        opener = charter.team_members[0].agent_id
        return self.owner == owner_of(opener) or opener in await self._knowing(charter.parent.comm_id, before=seq)

    async def _is_copied(self, comm_id: CommId, by: StoredEntry) -> bool:
        """Whether it was so in the goal that a group was forked from, where others may have stood in the place of members.

        Only what was copied, and only what was known at the place of the fork: later the copy's members tell what they know.
        """
        state = by.entry.state
        if not (state.copying or state.phase.is_terminal):
            return False
        original = await self._original(comm_id)
        return original is not None and bool(await self._knowing(original[0], before=original[1] + 1))

    async def _original(self, comm_id: CommId) -> tuple[CommId, int] | None:
        """Return the group that a group is a copy of, and up to which sequence."""
        first = await self.log.read(comm_id, after=0, limit=1)
        event = first[0].entry.event if first else None
        if not isinstance(event, GroupLaunched) or event.charter.forked_from is None:
            return None
        charter, origin = event.charter, event.charter.forked_from
        if charter.parent is None:
            return GoalName(charter.user, origin.goal_id).comm_id, origin.at
        above = await self._original(charter.parent.comm_id)
        return None if above is None else (comm_id_of_task(above[0], charter.parent.task_id), above[1])

    async def _entries(self, comm_id: CommId, before: int) -> AsyncIterator[StoredEntry]:
        after = 0
        while page := await self.log.read(comm_id, after=after, limit=_PAGE):
            for one in page:
                if one.seq >= before:
                    return
                yield one
            after = page[-1].seq

    def _is_named(self, one: StoredEntry) -> bool:
        return any((file.object_name, file.sha256) == (self.object_name, self.sha256) for file in files_of(one.entry.event))
