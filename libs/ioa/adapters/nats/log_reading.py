"""Group logs as people and programs outside of the groups read them: in pages, and told when there is more.

They come by direct gets, which any replica answers (NATS ADR-31) and which may lag. Not by a consumer: the server delivers for who
created one to any subject that was asked for, so that users must not create any. A plain subscription tells that something comes.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from nats.aio.client import Client
from nats.aio.msg import Msg

from ioa.adapters.nats.delivery import NatsProgress
from ioa.adapters.nats.log import NatsGroupLog, decoded_entry
from ioa.adapters.nats.reading import DirectReads
from ioa.adapters.nats.streams import next_messages
from ioa.adapters.nats.topology import LOG
from ioa.adapters.nats.turn_about import looking_now_and_then
from ioa.ports.group_client import GroupListener
from ioa.ports.group_log import StoredEntry
from ioa.protocol import subjects
from ioa.protocol.ids import CommId

_ONE_BY_ONE = 3
"""So many entries are asked for one by one before a page is: mostly there is one, or none."""
_PAGE, _PAGE_BYTES = 256, 2_000_000


class Logs:
    """Reads logs, and listens to them, over one connection."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._log = NatsGroupLog(client, js=DirectReads(client))
        self._progress = NatsProgress(client)

    async def entries(self, comm_id: CommId, *, after: int, limit: int | None) -> Sequence[StoredEntry]:
        """Read entries behind a sequence, in order; fewer than `limit` are all that there are.

        Raises:
            UnavailableError: The log cannot be read now.
            UnreadableEntryError: One of these entries is garbage.
        """
        found: list[StoredEntry] = []
        while limit is None or len(found) < limit:
            left = _PAGE if limit is None else limit - len(found)
            page = await self._log.read(comm_id, after=found[-1].seq if found else after, limit=min(_ONE_BY_ONE, left))
            found += page
            if len(page) < min(_ONE_BY_ONE, left):
                break
            if left > len(page):
                found += await self._page(comm_id, after=found[-1].seq, limit=min(_PAGE, left - len(page)))
        return found

    async def _page(self, comm_id: CommId, *, after: int, limit: int) -> Sequence[StoredEntry]:
        page = await next_messages(self._client, LOG, subjects.log(comm_id), after=after, limit=limit, max_bytes=_PAGE_BYTES)
        return [decoded_entry(comm_id, message.seq, message.data) for message in page.messages]

    @asynccontextmanager
    async def listen(self, comm_id: CommId, listener: GroupListener) -> AsyncIterator[None]:
        """Tell of each entry that is published, of each report of progress, and to look once in a while, while the block runs."""

        async def hear(_message: Msg) -> None:
            listener.hint()

        subscription = await self._client.subscribe(subjects.log(comm_id), cb=hear)
        try:
            async with self._progress.listening(listener.report, listener.look, subjects.progress(comm_id)):
                with looking_now_and_then(self._client, listener.look):
                    yield
        finally:
            if not self._client.is_closed:
                await subscription.unsubscribe()
