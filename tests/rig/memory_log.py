"""Group logs in a dictionary, with the failures a real log has when a test asks for them."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence, Set
from enum import StrEnum

from ioa.errors import UnavailableError
from ioa.group.events import EncodedEntry, Said, SubgroupOpened, files_of
from ioa.ports.group_log import AppendConflictError, StoredEntry, UnreadableEntryError
from ioa.protocol.ids import AgentId, CommId, MessageId


class Mishap(StrEnum):
    """What may become of one append besides being answered."""

    NOT_STORED = "not_stored"
    STORED_UNANSWERED = "stored_unanswered"


class MemoryGroupLog:
    """A `GroupLog` for unit tests. False in this: it is lost with the process, and only fails when told to.

    Every call lets other tasks run first, so that tasks can race as they do over a network.
    """

    def __init__(self) -> None:
        self._entries: dict[CommId, list[StoredEntry]] = {}
        self._garbage: dict[CommId, int] = {}
        self._last_seq = 0
        self._mishaps: deque[Mishap] = deque()
        self.reachable = True
        """Set to False, every call fails until it is set to True again."""
        self.searched = 0
        """How many entries were looked at for messages."""
        self.on_append: Callable[[], None] = lambda: None
        """Called when an append is under way, so that something can happen in between."""

    def spoil(self, comm_id: CommId) -> int:
        """Put garbage at the head of a group's log and return its sequence."""
        self._last_seq += 1
        self._garbage[comm_id] = self._last_seq
        return self._last_seq

    def fail_next_append(self, mishap: Mishap) -> None:
        """Have one more append end in `UnavailableError`, stored or not."""
        self._mishaps.append(mishap)

    async def last(self, comm_id: CommId) -> StoredEntry | None:
        """Read the head."""
        await self._arrive()
        self._check(comm_id)
        return self._of(comm_id)[-1] if self._of(comm_id) else None

    async def append(self, comm_id: CommId, entry: EncodedEntry, *, expected_seq: int, log_bytes: int = 0) -> int:
        """Append if nobody else has."""
        await self._arrive()
        self.on_append()
        mishap = self._mishaps.popleft() if self._mishaps else None
        if mishap is Mishap.NOT_STORED:
            raise UnavailableError(f"The log of {comm_id} did not answer.")
        entries = self._of(comm_id)
        if comm_id in self._garbage or (entries[-1].seq if entries else 0) != expected_seq:
            raise AppendConflictError(f"The log of {comm_id} has moved on from {expected_seq}.")
        self._last_seq += 1
        self._entries.setdefault(comm_id, []).append(
            StoredEntry(self._last_seq, entry.entry, len(entry.data), log_bytes + len(entry.data))
        )
        if mishap is Mishap.STORED_UNANSWERED:
            raise UnavailableError(f"The log of {comm_id} did not answer.")
        return self._last_seq

    async def read(self, comm_id: CommId, *, after: int, limit: int, max_bytes: int | None = None) -> Sequence[StoredEntry]:
        """Read a page."""
        await self._arrive()
        page: list[StoredEntry] = []
        for stored in [stored for stored in self._of(comm_id) if stored.seq > after][:limit]:
            if max_bytes is not None and sum(one.size_bytes for one in page) >= max_bytes:
                return page
            page.append(stored)
        if len(page) < limit and self._garbage.get(comm_id, 0) > after:
            self._check(comm_id)
        return page

    async def find_message(self, comm_id: CommId, message_id: MessageId, *, sender: AgentId, after: int, limit: int) -> int | None:
        """Look for a message."""
        for stored in await self.read(comm_id, after=after, limit=limit):
            self.searched += 1
            event = stored.entry.event
            if isinstance(event, Said) and (event.message.header.sender, event.message.header.message_id) == (sender, message_id):
                return stored.seq
        return None

    def lose(self) -> None:
        """Lose every log."""
        self._entries.clear()
        self._last_seq = 0

    def comm_ids(self) -> Sequence[CommId]:
        """Return the groups that have a log."""
        return list(self._entries)

    async def belongings(self, comm_id: CommId) -> tuple[Sequence[CommId], Set[str]]:
        """Read what the log names."""
        events = [stored.entry.event for stored in await self.read(comm_id, after=0, limit=1_000_000)]
        nested = [event.subgroup for event in events if isinstance(event, SubgroupOpened)]
        return nested, {file.object_name for event in events for file in files_of(event)}

    async def remove(self, comm_id: CommId) -> None:
        """Remove a group's log, as retention does."""
        self._entries.pop(comm_id, None)

    async def _arrive(self) -> None:
        await asyncio.sleep(0)
        if not self.reachable:
            raise UnavailableError("The logs are out of reach.")

    def _check(self, comm_id: CommId) -> None:
        seq = self._garbage.get(comm_id)
        if seq is not None:
            raise UnreadableEntryError(f"Entry {seq} of group {comm_id} cannot be read.", comm_id=comm_id, seq=seq, data=b"garbage")

    def _of(self, comm_id: CommId) -> list[StoredEntry]:
        return self._entries.get(comm_id, [])
