"""The group's log: the one write that decides, and the reads that repair."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from ioa.errors import IoaError
from ioa.group.events import EncodedEntry, Entry
from ioa.protocol.ids import CommId


class AppendConflictError(IoaError):
    """Somebody else appended first. Reload and step again."""

    wire_code = "append_conflict"
    retryable = True


@dataclass(frozen=True)
class StoredEntry:
    """An entry and its sequence. Sequences rise within a group, with gaps."""

    seq: int
    entry: Entry


class GroupLog(Protocol):
    """One totally ordered log for each group."""

    async def last(self, comm_id: CommId) -> StoredEntry | None:
        """Read the head from the log's leader, so that it is never stale; None if the log is empty.

        Raises:
            UnavailableError: The log cannot be read now.
        """

    async def append(self, comm_id: CommId, entry: EncodedEntry, *, expected_seq: int) -> int:
        """Append if the head is still at `expected_seq` (0: the log is empty) and return the new sequence.

        Raises:
            AppendConflictError: It is not.
            UnavailableError: Whether the entry was stored is unknown; only reading the log can tell.
        """

    async def read(self, comm_id: CommId, *, after: int, limit: int) -> Sequence[StoredEntry]:
        """Read up to `limit` entries behind `after`, in order.

        Raises:
            UnavailableError: The log cannot be read now.
        """

    async def newest(self) -> int:
        """Read the sequence of the newest entry of any group, from the log's leader; it rises with every append.

        Raises:
            UnavailableError: The log cannot be read now.
        """

    async def comm_ids(self) -> Sequence[CommId]:
        """List every group that has a log, ended ones too."""
