"""The log of a group: a totally ordered list of entries with conditional appends."""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import dataclass, field
from typing import Protocol

from ioa.errors import ERRORS, ErrorRow, Fault, IoaError, Retry
from ioa.group.events import EncodedEntry, Entry, Said
from ioa.protocol.ids import AgentId, CommId, MessageId


class AppendConflictError(IoaError):
    """Another router appended first. Read the head and step again."""


class UnreadableEntryError(IoaError):
    """An entry of a group's log cannot be decoded, so the group cannot continue.

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
        size_bytes: Size of its encoding; 0 if unknown.
        log_bytes: Bytes of the group's log up to this entry.
    """

    seq: int
    entry: Entry
    size_bytes: int = field(default=0, compare=False)
    log_bytes: int = field(default=0, compare=False)


class GroupLog(Protocol):
    """One totally ordered log for each group. Every method raises `UnavailableError` if the store does not answer."""

    async def last(self, comm_id: CommId) -> StoredEntry | None:
        """Return the head, read from the stream's leader, so it is never stale; None if the log is empty.

        Raises:
            UnreadableEntryError: The head cannot be decoded.
        """

    async def append(self, comm_id: CommId, entry: EncodedEntry, *, expected_seq: int, log_bytes: int = 0) -> int:
        """Append if the head has the sequence `expected_seq` (0: the log is empty); return the new sequence.

        Args:
            comm_id: The group.
            entry: The entry. It is stored with the log's size: `log_bytes` and its own size.
            expected_seq: Sequence of the head.
            log_bytes: Size of the log before this entry.

        Raises:
            AppendConflictError: The head has another sequence.
            StoreFullError: The store is full.
            UnavailableError: Unknown whether the entry was stored; read the log.
        """

    async def read(self, comm_id: CommId, *, after: int, limit: int, max_bytes: int | None = None) -> Sequence[StoredEntry]:
        """Return up to `limit` entries after the sequence `after`; the entry that reaches `max_bytes` is the last one.

        Raises:
            UnreadableEntryError: One of these entries cannot be decoded.
        """

    async def find_message(self, comm_id: CommId, message_id: MessageId, *, sender: AgentId, after: int, limit: int) -> int | None:
        """Return the sequence of a sender's message in the first `limit` entries after `after`; None if it is not there.

        Two senders can use the same id.
        """

    async def belongings(self, comm_id: CommId) -> tuple[Sequence[CommId], Set[str]]:
        """Return the nested groups and the names of files that a log contains."""

    async def remove(self, comm_id: CommId) -> None:
        """Remove a log."""


class GroupListener(Protocol):
    """A reader that a live subscription informs of a group."""

    def hint(self) -> None:
        """Note that an entry was stored, or soon is."""

    def look(self) -> None:
        """Note that a hint may be lost: periodically, and after each reconnect."""

    def report(self, said: Said) -> None:
        """Take a progress report that is not an entry."""
