"""The group's log: the one write that decides, and the reads that repair."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from ioa.errors import ERRORS, ErrorRow, Fault, IoaError, Retry
from ioa.group.events import EncodedEntry, Entry
from ioa.protocol.ids import AgentId, CommId, MessageId


class AppendConflictError(IoaError):
    """Somebody else appended first. Reload and step again."""


class UnreadableEntryError(IoaError):
    """An entry of a group's log is garbage. No version of any process can read it, so that the group cannot go on.

    Attributes:
        comm_id: The group.
        seq: The entry's sequence.
        data: The entry as it is stored.
    """

    def __init__(self, message: str, *, hint: str = "", comm_id: CommId = CommId(""), seq: int = 0, data: bytes = b"") -> None:
        super().__init__(message, hint=hint)
        self.comm_id = comm_id
        self.seq = seq
        self.data = data


ERRORS[AppendConflictError] = ErrorRow("append_conflict", Fault.SYSTEM, Retry.ENDLESS, "warning")
ERRORS[UnreadableEntryError] = ErrorRow("unreadable_entry", Fault.SYSTEM, Retry.BOUNDED, "error")


@dataclass(frozen=True)
class StoredEntry:
    """An entry and its sequence. Sequences rise within a group, with gaps.

    Attributes:
        size_bytes: How long its encoding is, by which whoever remembers entries can bound them; 0 if that is not known.
        log_bytes: Bytes of the group's log up to this entry.
    """

    seq: int
    entry: Entry
    size_bytes: int = field(default=0, compare=False)
    log_bytes: int = field(default=0, compare=False)


class GroupLog(Protocol):
    """One totally ordered log for each group."""

    async def last(self, comm_id: CommId) -> StoredEntry | None:
        """Read the head from the log's leader, so that it is never stale; None if the log is empty.

        Raises:
            UnavailableError: The log cannot be read now.
            UnreadableEntryError: Its head is garbage.
        """

    async def append(self, comm_id: CommId, entry: EncodedEntry, *, expected_seq: int, log_bytes: int = 0) -> int:
        """Append if the head is still at `expected_seq` (0: the log is empty) and return the new sequence.

        The entry is stored with the log's size after it: `log_bytes` before it, and its own size.

        Raises:
            AppendConflictError: It is not.
            StoreFullError: The store has no room.
            UnavailableError: Whether the entry was stored is unknown; only reading the log can tell.
        """

    async def read(self, comm_id: CommId, *, after: int, limit: int, max_bytes: int | None = None) -> Sequence[StoredEntry]:
        """Read up to `limit` entries behind `after`, in order; no more after those that together have `max_bytes`.

        Raises:
            UnavailableError: The log cannot be read now.
            UnreadableEntryError: One of these entries is garbage.
        """

    async def find_message(
        self, comm_id: CommId, message_id: MessageId, *, sender: AgentId, after: int, limit: int, max_bytes: int | None = None
    ) -> int | None:
        """Look for a sender's message in the first `limit` entries behind `after`, without what they led to; return its sequence.

        Others' messages of the same id are passed over: anybody may choose it. With `max_bytes` the entry that reaches it is the
        last one that is looked at.

        Raises:
            UnavailableError: The log cannot be read now.
        """

    async def newest(self) -> int:
        """Read the sequence of the newest entry of any group, from the log's leader; it rises with every append.

        Raises:
            UnavailableError: The log cannot be read now.
        """

    async def epoch(self) -> str:
        """Name the store that the logs are in: its name is another one when the logs that were in it are gone.

        Raises:
            UnavailableError: The store cannot be asked now, or is not there.
        """
