"""Memberships (bucket `IOA_MEMBERS`) and the index of open groups (bucket `IOA_OPEN`).

Both can be derived from the logs of open groups. Routers write lost entries again when a group's timer fires. No process follows
these buckets, so removed keys leave no mark.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from nats.aio.client import Client

from ioa.adapters.nats.stores.records import Records
from ioa.adapters.nats.streams.stream import Stream
from ioa.adapters.nats.streams.topology import MEMBERS, OPEN, stream_of, subject_of
from ioa.group.requests import OpenMembership, OpenMemberships
from ioa.protocol.ids import AgentId, CommId, UserId
from ioa.protocol.setup.charter import MAX_MEMBERS
from ioa.protocol.setup.open_groups import OpenGroup


class NatsMemberships:
    """Memberships, one key `<agent_id>.<comm_id>` each, numbered by its sequence. Any replica, which may lag, answers for pages."""

    def __init__(self, client: Client) -> None:
        self._stream = Stream(client, stream_of(MEMBERS))

    async def add(self, agent_ids: Iterable[AgentId], comm_id: CommId) -> None:
        """Store memberships of a group; a stored membership keeps its number."""
        found = await self._stream.page(_key("*", comm_id), after=0, limit=MAX_MEMBERS)
        for key in {_key(agent_id, comm_id) for agent_id in agent_ids} - {message.subject for message in found.messages}:
            await self._stream.publish_onto(key, b"")

    async def remove(self, agent_id: AgentId, comm_id: CommId) -> None:
        """Remove a membership."""
        await self._stream.purge(_key(agent_id, comm_id))

    async def remove_group(self, comm_id: CommId) -> None:
        """Remove all memberships of a group."""
        await self._stream.purge(_key("*", comm_id))

    async def newest(self, agent_id: AgentId) -> int:
        """Return the highest number of the agent's memberships, from the stream's leader; 0 without memberships."""
        message = await self._stream.last(_key(agent_id, "*"))
        return 0 if message is None else message.seq

    async def page(self, agent_id: AgentId, *, after: int, limit: int) -> OpenMemberships:
        """Return a page of the agent's memberships after a number."""
        page = await self._stream.page(_key(agent_id, "*"), after=after, limit=limit)
        found = [OpenMembership(comm_id=_comm_id(one.subject), number=one.seq) for one in page.messages]
        return OpenMemberships(memberships=tuple(found), complete=page.complete)

    async def list_groups(self, agent_id: AgentId) -> Sequence[CommId]:
        """Return all groups of an agent."""
        return [_comm_id(one.subject) async for one in self._stream.messages(_key(agent_id, "*"))]


class NatsOpenGroups:
    """The index of open groups, one key `<user>.<comm_id>` each."""

    def __init__(self, client: Client) -> None:
        self._groups = Records(client, OPEN, OpenGroup)

    async def add(self, user: UserId, comm_id: CommId, group: OpenGroup) -> bool:
        """Store a group of a user, unless the index contains it; return whether it was stored."""
        return await self._groups.put_onto(f"{user}.{comm_id}", group) is not None

    async def put(self, user: UserId, comm_id: CommId, group: OpenGroup) -> None:
        """Store or replace a group."""
        await self._groups.put(f"{user}.{comm_id}", group)

    async def find(self, comm_id: CommId) -> OpenGroup | None:
        """Return a group."""
        return await self._groups.find(f"*.{comm_id}")

    async def remove(self, comm_id: CommId) -> None:
        """Remove a group."""
        await self._groups.erase(f"*.{comm_id}")

    async def page(self, *, after: int, limit: int) -> tuple[Sequence[CommId], int | None]:
        """Return a page from any replica, which may lag, and the number to continue from; None at the end."""
        page = await self._groups.stream.page(self._groups.subject("*.*"), after=after, limit=limit)
        return [_comm_id(one.subject) for one in page.messages], None if page.complete else page.messages[-1].seq


def _key(agent_id: str, comm_id: str) -> str:
    return subject_of(MEMBERS, f"{agent_id}.{comm_id}")


def _comm_id(subject: str) -> CommId:
    return CommId(subject.rpartition(".")[2])
