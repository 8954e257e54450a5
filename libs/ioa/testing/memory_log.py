"""Group logs in a dictionary, with the failures a real log has when a test asks for them."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from enum import StrEnum

from ioa.errors import UnavailableError
from ioa.group.events import EncodedEntry
from ioa.ports.group_log import AppendConflictError, StoredEntry
from ioa.protocol.ids import CommId


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
        self._last_seq = 0
        self._mishaps: deque[Mishap] = deque()
        self.reachable = True
        """Set to False, every call fails until it is set to True again."""
        self.on_append: Callable[[], None] = lambda: None
        """Called when an append is under way, so that something can happen in between."""

    def fail_next_append(self, mishap: Mishap) -> None:
        """Have one more append end in `UnavailableError`, stored or not."""
        self._mishaps.append(mishap)

    async def last(self, comm_id: CommId) -> StoredEntry | None:
        """Read the head."""
        await self._arrive()
        return self._of(comm_id)[-1] if self._of(comm_id) else None

    async def append(self, comm_id: CommId, entry: EncodedEntry, *, expected_seq: int) -> int:
        """Append if nobody else has."""
        await self._arrive()
        self.on_append()
        mishap = self._mishaps.popleft() if self._mishaps else None
        if mishap is Mishap.NOT_STORED:
            raise UnavailableError(f"The log of {comm_id} did not answer.")
        entries = self._of(comm_id)
        if (entries[-1].seq if entries else 0) != expected_seq:
            raise AppendConflictError(f"The log of {comm_id} has moved on from {expected_seq}.")
        self._last_seq += 1
        self._entries.setdefault(comm_id, []).append(StoredEntry(self._last_seq, entry.entry))
        if mishap is Mishap.STORED_UNANSWERED:
            raise UnavailableError(f"The log of {comm_id} did not answer.")
        return self._last_seq

    async def read(self, comm_id: CommId, *, after: int, limit: int) -> Sequence[StoredEntry]:
        """Read a page."""
        await self._arrive()
        return [stored for stored in self._of(comm_id) if stored.seq > after][:limit]

    async def newest(self) -> int:
        """Read the last sequence given."""
        await self._arrive()
        return self._last_seq

    async def comm_ids(self) -> Sequence[CommId]:
        """List the groups that have a log."""
        await self._arrive()
        return list(self._entries)

    async def _arrive(self) -> None:
        await asyncio.sleep(0)
        if not self.reachable:
            raise UnavailableError("The logs are out of reach.")

    def _of(self, comm_id: CommId) -> list[StoredEntry]:
        return self._entries.get(comm_id, [])
