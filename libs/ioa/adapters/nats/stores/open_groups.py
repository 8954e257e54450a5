"""What is open, in buckets that hold nothing else: who is in which group (`IOA_MEMBERS`), and which groups there are (`IOA_OPEN`).

Nobody follows these buckets. What is removed leaves no marker behind, so that a bucket is as large as what is open.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from nats.aio.client import Client

from ioa.adapters.nats.stores.bucket_handle import BucketHandle
from ioa.adapters.nats.streams.compare_and_set import erase, last_message, next_message, stream_of, subject_of
from ioa.adapters.nats.streams.stream_reader import next_messages
from ioa.adapters.nats.streams.topology import MEMBERS, OPEN
from ioa.adapters.nats.wire.translated_errors import unavailable_unless_answered
from ioa.group.requests import OpenMembership, OpenMemberships
from ioa.protocol.codec import decode, encode
from ioa.protocol.ids import AgentId, CommId
from ioa.protocol.open_groups import OpenGroup

_PAGE = 500


@dataclass(frozen=True)
class OpenPage:
    """A page of the index of open groups. The next page begins after `last`; `complete` marks the last page."""

    comm_ids: Sequence[CommId]
    last: int
    complete: bool


class NatsMemberships:
    """The bucket `IOA_MEMBERS`, one key `<agent_id>.<comm_id>` for each open membership, numbered by its sequence."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._js = client.jetstream()
        self._bucket = BucketHandle(self._js, MEMBERS)

    async def add(self, agent_ids: Sequence[AgentId], comm_id: CommId) -> None:
        """Put agents into a group."""
        with unavailable_unless_answered("The record of memberships"):
            bucket = await self._bucket.open()
            for agent_id in agent_ids:
                await bucket.put(f"{agent_id}.{comm_id}", b"")

    async def remove(self, agent_id: AgentId, comm_id: CommId) -> None:
        """Forget a membership."""
        with unavailable_unless_answered("The record of memberships"):
            await erase(self._js, MEMBERS, f"{agent_id}.{comm_id}")

    async def newest(self, agent_id: AgentId) -> int:
        """Ask the stream's leader for the last key of the agent."""
        with unavailable_unless_answered("The record of memberships"):
            message = await last_message(self._js, stream_of(MEMBERS), subject_of(MEMBERS, f"{agent_id}.*"))
        return 0 if message is None else message.seq or 0

    async def holds(self, agent_id: AgentId, comm_id: CommId) -> bool:
        """Ask the stream's leader for the key."""
        with unavailable_unless_answered("The record of memberships"):
            key = subject_of(MEMBERS, f"{agent_id}.{comm_id}")
            return await last_message(self._js, stream_of(MEMBERS), key) is not None

    async def page(self, agent_id: AgentId, *, after: int, limit: int) -> OpenMemberships:
        """Read a page from any replica, which may lag; so ask the stream's leader if that is the last page.

        A caller takes groups that are not listed as ended.
        """
        stream, pattern = stream_of(MEMBERS), subject_of(MEMBERS, f"{agent_id}.*")
        page = await next_messages(self._client, stream, pattern, after=after, limit=limit)
        found = [_membership(one.subject, one.seq) for one in page.messages]
        after, complete = page.messages[-1].seq if page.messages else after, page.complete
        with unavailable_unless_answered("The record of memberships"):
            while complete and (one := await next_message(self._js, stream, pattern, after=after)) is not None:
                after, complete = one.seq or 0, len(found) < limit
                if complete:
                    found.append(_membership(one.subject or "", after))
        return OpenMemberships(memberships=tuple(found), complete=complete)

    async def of(self, agent_id: AgentId) -> Sequence[CommId]:
        """Read all pages of an agent."""
        found: list[CommId] = []
        after, complete = 0, False
        while not complete:
            page = await self.page(agent_id, after=after, limit=_PAGE)
            found += [membership.comm_id for membership in page.memberships]
            after, complete = page.memberships[-1].number if page.memberships else after, page.complete
        return found


def _membership(subject: str, number: int) -> OpenMembership:
    return OpenMembership(comm_id=CommId(subject.rpartition(".")[2]), number=number)


class NatsOpenGroups:
    """The bucket `IOA_OPEN`, one key for each group that is open. Keys with a dot in them are notes, and no groups."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._js = client.jetstream()
        self._bucket = BucketHandle(self._js, OPEN)

    async def put(self, comm_id: CommId, group: OpenGroup) -> None:
        """Note a group."""
        with unavailable_unless_answered("The index of open groups"):
            await (await self._bucket.open()).put(comm_id, encode(group))

    async def find(self, comm_id: CommId) -> OpenGroup | None:
        """Read what is noted, from the stream's leader."""
        with unavailable_unless_answered("The index of open groups"):
            message = await last_message(self._js, stream_of(OPEN), subject_of(OPEN, comm_id))
        return None if message is None else decode(OpenGroup, message.data or b"")

    async def remove(self, comm_id: CommId) -> None:
        """Forget a group."""
        with unavailable_unless_answered("The index of open groups"):
            await erase(self._js, OPEN, comm_id)

    async def page(self, *, after: int, limit: int) -> OpenPage:
        """Read a page by one request."""
        page = await next_messages(self._client, stream_of(OPEN), subject_of(OPEN, "*"), after=after, limit=limit)
        comm_ids = [CommId(message.subject.rpartition(".")[2]) for message in page.messages]
        return OpenPage(comm_ids, page.messages[-1].seq if page.messages else after, page.complete)
