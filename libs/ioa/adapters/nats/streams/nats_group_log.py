"""The groups' logs in the JetStream stream `IOA_LOG`, one subject each."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence, Set
from contextlib import suppress

import nats.errors
from nats.aio.client import Client

from ioa.adapters.nats.streams.stream import Stream, StreamMessage
from ioa.adapters.nats.streams.topology import LOG
from ioa.errors import InvalidInputError
from ioa.fair_semaphore import FairSemaphore
from ioa.group.events import EncodedEntry, Entry, SubgroupOpened, files_of, said_as
from ioa.ports.group_log import AppendConflictError, StoredEntry, UnreadableEntryError
from ioa.protocol import subjects
from ioa.protocol.codec import decode
from ioa.protocol.ids import AgentId, CommId, MessageId

_LOG_BYTES = "Ioa-Log-Bytes"
"""Header of an entry: bytes of its group's log up to it. JetStream counts bytes per stream, not per subject."""
_PAGE_ENTRIES = 32
"""Entries of a page. An entry may have a megabyte."""
_READ_AT_ONCE, _READ_OF_ONE = 4, 2
"""Maximum concurrent reads of entries, in total and per group: nats-server disconnects a client with 8 MB of unread data."""


class NatsGroupLog:
    """Group logs in JetStream. Optimistic concurrency by expected last sequence of the subject.

    `report_unreadable` is called with the error of each unreadable entry before it is raised.
    """

    def __init__(self, client: Client, report_unreadable: Callable[[UnreadableEntryError], Awaitable[None]] | None = None) -> None:
        self._report_unreadable = report_unreadable
        self._stream = Stream(client, LOG)
        self._reads = FairSemaphore(_READ_AT_ONCE, _READ_OF_ONE)

    async def last(self, comm_id: CommId) -> StoredEntry | None:
        """Read the head."""
        return await self._decode(comm_id, await self._fetch(comm_id))

    async def append(self, comm_id: CommId, entry: EncodedEntry, *, expected_seq: int, log_bytes: int = 0) -> int:
        """Append the entry if the head is as expected, and signal it to followers of the goal; see the port."""
        headers = {_LOG_BYTES: str(log_bytes + len(entry.data))}
        seq = await self._stream.publish_onto(subjects.log(comm_id), entry.data, last=expected_seq, headers=headers)
        if seq is None:
            raise AppendConflictError(f"The log of {comm_id} has moved on from {expected_seq}.")
        with suppress(nats.errors.Error, OSError):  # followers also read periodically
            goal = entry.entry.state.name
            await self._stream.client.publish(subjects.live_entry(goal.user, goal.comm_id))
        return seq

    async def read(self, comm_id: CommId, *, after: int, limit: int, max_bytes: int | None = None) -> Sequence[StoredEntry]:
        """Read a page, entry by entry."""
        page: list[StoredEntry] = []
        while len(page) < limit and (max_bytes is None or sum(stored.size_bytes for stored in page) < max_bytes):
            stored = await self._decode(comm_id, await self._fetch(comm_id, after=after))
            if stored is None:
                break
            page.append(stored)
            after = stored.seq
        return page

    async def find_message(self, comm_id: CommId, message_id: MessageId, *, sender: AgentId, after: int, limit: int) -> int | None:
        """Search entry by entry, and decode only the event of each."""
        for _ in range(limit):
            found = await self._fetch(comm_id, after=after)
            if found is None or said_as(found.data) == (sender, message_id):
                return None if found is None else found.seq
            after = found.seq
        return None

    async def belongings(self, comm_id: CommId) -> tuple[Sequence[CommId], Set[str]]:
        """Return the nested groups and the names of files in a log. Unreadable entries contain nothing."""
        nested, files = list[CommId](), set[str]()
        async for message in self._stream.messages(subjects.log(comm_id), batch=_PAGE_ENTRIES):
            with suppress(InvalidInputError):
                event = decode(Entry, message.data).event
                files.update(file.object_name for file in files_of(event))
                if isinstance(event, SubgroupOpened):
                    nested.append(event.subgroup)
        return nested, files

    async def remove(self, comm_id: CommId) -> None:
        """Remove a log."""
        await self._stream.purge(subjects.log(comm_id))

    async def _fetch(self, comm_id: CommId, *, after: int | None = None) -> StreamMessage | None:
        """Read from the leader the last entry, or the first entry after a sequence."""
        subject = subjects.log(comm_id)
        async with self._reads.slot(comm_id):
            return await (self._stream.last(subject) if after is None else self._stream.next(subject, after=after))

    async def _decode(self, comm_id: CommId, message: StreamMessage | None) -> StoredEntry | None:
        if message is None:
            return None
        try:
            return read_entry(comm_id, message)
        except UnreadableEntryError as error:
            if self._report_unreadable is not None:
                await self._report_unreadable(error)
            raise


def read_entry(comm_id: CommId, message: StreamMessage) -> StoredEntry:
    """Decode a stored entry, or raise `UnreadableEntryError`."""
    data, log_bytes = message.data, int(message.headers.get(_LOG_BYTES, 0))
    try:
        return StoredEntry(message.seq, decode(Entry, data), len(data), log_bytes)
    except InvalidInputError as error:
        raise UnreadableEntryError(
            f"Entry {message.seq} of group {comm_id} cannot be read: {error.message}",
            hint=f"Look at it with: nats stream get {LOG} {message.seq}",
            comm_id=comm_id,
            seq=message.seq,
            data=data,
        ) from None
