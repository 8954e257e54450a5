"""Group logs as people and programs outside of the groups read them: in pages, and told when there is more.

They come by direct gets, which any replica answers (NATS ADR-31) and which may lag. Not by a consumer: the server delivers for who
created one to any subject that was asked for, so that users must not create any. A plain subscription tells that something comes.
"""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager

from nats.aio.client import Client
from nats.aio.msg import Msg

from ioa.adapters.nats.delivery import NatsProgress
from ioa.adapters.nats.log import NatsGroupLog, decoded_entry
from ioa.adapters.nats.reading import DirectReads, messages_before
from ioa.adapters.nats.streams import last_messages, next_messages
from ioa.adapters.nats.topology import LOG
from ioa.adapters.nats.turn_about import looking_now_and_then
from ioa.group.requests import GroupSnapshot
from ioa.page_size import count_page
from ioa.ports.group_client import GroupListener
from ioa.ports.group_log import StoredEntry
from ioa.protocol import subjects
from ioa.protocol.ids import CommId
from ioa.protocol.stream_reads import MOST_SUBJECTS

_ONE_BY_ONE = 3
"""So many entries are asked for one by one before a page is: mostly there is one, or none."""
_PAGE, _PAGE_BYTES = 256, 2_000_000


class Logs:
    """Reads logs, and listens to them, over one connection."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._log = NatsGroupLog(client, js=DirectReads(client))
        self._progress = NatsProgress(client)

    async def entries(
        self, comm_id: CommId, *, after: int, limit: int | None, max_bytes: int | None = None
    ) -> Sequence[StoredEntry]:
        """Read entries behind a sequence, in order; fewer than `limit` are all that there are, unless they have `max_bytes`.

        Raises:
            UnavailableError: The log cannot be read now.
            UnreadableEntryError: One of these entries is garbage.
        """
        found: list[StoredEntry] = []
        most, most_bytes = (sys.maxsize if one is None else one for one in (limit, max_bytes))
        while len(found) < most and (left_bytes := most_bytes - _bytes(found)) > 0:
            some = min(_ONE_BY_ONE, most - len(found))
            page = await self._log.read(comm_id, after=found[-1].seq if found else after, limit=some, max_bytes=left_bytes)
            found += page
            left, left_bytes = min(_PAGE, most - len(found)), left_bytes - _bytes(page)
            if len(page) < some and left_bytes > 0:
                break
            if left > 0 and left_bytes > 0:
                found += await self._page(comm_id, after=found[-1].seq, limit=left, max_bytes=min(_PAGE_BYTES, left_bytes))
        return found

    async def entries_before(
        self, comm_id: CommId, *, before: int, limit: int, max_bytes: int | None = None
    ) -> Sequence[StoredEntry]:
        """Read the last entries before a sequence, in order; fewer than `limit` are all, unless they have `max_bytes`.

        Raises:
            UnavailableError: The log cannot be read now.
            UnreadableEntryError: One of these entries is garbage.
        """
        messages = await messages_before(self._client, LOG, subjects.log(comm_id), before=before, limit=limit)
        some = count_page((len(one.data) for one in reversed(messages)), max_bytes, limit)
        last = messages[len(messages) - some :]
        found = [decoded_entry(comm_id, one.seq, one.data) for one in last]
        following = await self._following(comm_id, found[-1] if found else None, before)
        if following is not None and (head := await self._log.last(comm_id)) is not None:
            before = min(before, head.seq + 1)  # what is stored from now on is not waited for
        while following is not None:
            found.append(following)
            following = await self._following(comm_id, following, before)
        return found[-limit:]

    async def heads(self, comm_ids: Sequence[CommId], *, at: int) -> Mapping[CommId, GroupSnapshot]:
        """Read the last entry of each group up to a sequence, and keep of each where the group stood.

        One request for each thousand of them, if the replica that answers shows by the entry `at` itself that it has come as far.
        The leader is asked of each group else.

        Raises:
            UnavailableError: The logs cannot be read now.
            UnreadableEntryError: One of these entries is garbage.
        """
        found = dict[CommId, GroupSnapshot]()
        for first in range(0, len(comm_ids), MOST_SUBJECTS):
            found |= await self._heads(comm_ids[first : first + MOST_SUBJECTS], at)
        return found

    async def _heads(self, comm_ids: Sequence[CommId], at: int) -> Mapping[CommId, GroupSnapshot]:
        named = {subjects.log(comm_id): comm_id for comm_id in comm_ids}
        last = await last_messages(self._client, LOG, [*named], up_to=at)
        found = {named[one.subject]: _standing(decoded_entry(named[one.subject], one.seq, one.data)) for one in last}
        if any(standing.seq == at for standing in found.values()):
            return found
        confirmed = {comm_id: await self._confirmed(comm_id, found.get(comm_id), at) for comm_id in comm_ids}
        return {comm_id: standing for comm_id, standing in confirmed.items() if standing is not None}

    async def _confirmed(self, comm_id: CommId, found: GroupSnapshot | None, at: int) -> GroupSnapshot | None:
        """Tell where a group stood by the last entry up to `at`, by the leader, where a replica has told of `found`."""
        if found is None:
            head = await self._log.last(comm_id)
            if head is None or head.seq <= at:
                return None if head is None else _standing(head)
        following = await self._following(comm_id, found, at + 1)
        if following is not None and (head := await self._log.last(comm_id)) is not None and head.seq <= at:
            return _standing(head)  # rather than entry by entry: others may be stored as fast as they are read
        while following is not None:
            found, following = _standing(following), await self._following(comm_id, following, at + 1)
        return found

    async def _following(self, comm_id: CommId, stored: StoredEntry | GroupSnapshot | None, before: int) -> StoredEntry | None:
        """Ask the leader for the entry behind one, or the first, if it lies before a sequence."""
        page = await self._log.read(comm_id, after=0 if stored is None else stored.seq, limit=1)
        return page[0] if page and page[0].seq < before else None

    async def _page(self, comm_id: CommId, *, after: int, limit: int, max_bytes: int) -> Sequence[StoredEntry]:
        page = await next_messages(self._client, LOG, subjects.log(comm_id), after=after, limit=limit, max_bytes=max_bytes)
        return [decoded_entry(comm_id, one.seq, one.data) for one in page.messages]

    @asynccontextmanager
    async def listen(self, comm_id: CommId, listener: GroupListener) -> AsyncIterator[None]:
        """Tell of each entry that is published, of each report of progress, and to look once in a while, while the block runs."""

        async def hear(_message: Msg) -> None:
            listener.hint()

        subscription = await self._client.subscribe(subjects.log(comm_id), cb=hear)
        try:
            async with self._progress.listening(listener.report, listener.look, subjects.progress(comm_id), only_routers=True):
                with looking_now_and_then(self._client, listener.look):
                    yield
        finally:
            if not self._client.is_closed:
                await subscription.unsubscribe()


def _bytes(page: Sequence[StoredEntry]) -> int:
    return sum(stored.size_bytes for stored in page)


def _standing(head: StoredEntry) -> GroupSnapshot:
    return GroupSnapshot(seq=head.seq, state=head.entry.state, charter=None)
