"""Unreadable entries of group logs: each is counted, logged once, and copied to the dead letters.

Such a group does not continue. Its goal ends at its deadline.
"""

from __future__ import annotations

import structlog

from ioa.errors import UnavailableError
from ioa.ports.delivery import DeadLetters
from ioa.ports.group_log import UnreadableEntryError
from ioa.protocol import subjects
from ioa.protocol.dead_letters import DeadReason
from ioa.runtime.group_metrics import unreadable

_log = structlog.get_logger(__name__)


class UnreadableEntries:
    """Record unreadable entries."""

    def __init__(self, dead: DeadLetters) -> None:
        self._dead = dead
        self._recorded: set[int] = set()

    async def note(self, error: UnreadableEntryError) -> None:
        """Count an entry, and store a copy when this process reads it for the first time. Raises no error."""
        unreadable.inc()
        if error.seq in self._recorded:
            return
        _log.error("group_unreadable", comm_id=error.comm_id, seq=error.seq, error=error.message)
        key, subject = f"{error.comm_id}/{error.seq}", subjects.log(error.comm_id)
        try:
            await self._dead.put(DeadReason.UNREADABLE_ENTRY, str(error), subject=subject, data=error.data, key=key)
            self._recorded.add(error.seq)
        except UnavailableError as failure:
            _log.warning("not_set_aside", comm_id=error.comm_id, seq=error.seq, error=failure.message)
