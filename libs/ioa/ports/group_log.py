"""The log of a group: a totally ordered list of entries with conditional appends."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

from ioa.errors import ERRORS, ErrorRow, Fault, IoaError, Retry
from ioa.group.events import Entry, Said
from ioa.protocol.ids import CommId


class AppendConflictError(IoaError):
    """Another router appended first. Read the head and step again."""


class UnreadableEntryError(IoaError):
    """An entry of a group's log cannot be decoded, so the group cannot continue.

    Attributes:
        comm_id: The group.
        seq: The entry's sequence.
    """

    def __init__(self, message: str, *, hint: str = "", comm_id: CommId = CommId(""), seq: int = 0) -> None:
        super().__init__(message, hint=hint)
        self.comm_id = comm_id
        self.seq = seq


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


class GroupListener(Protocol):
    """A reader that a live subscription informs of a group."""

    def hint(self) -> None:
        """Note that an entry was stored, or soon is."""

    def look(self) -> None:
        """Note that a hint may be lost: periodically, and after each reconnect."""

    def report(self, said: Said) -> None:
        """Take a progress report that is not an entry."""
