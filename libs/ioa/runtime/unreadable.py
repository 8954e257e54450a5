"""Groups whose logs cannot be read: each is counted and said once, and a copy of the entry is kept where it can be looked at.

Such a group stands still. Whoever comes across it gets the error and goes on with the others; its goal ends at its deadline.
"""

from __future__ import annotations

from collections import OrderedDict

import structlog

from ioa.errors import UnavailableError
from ioa.ports.delivery import DeadLetters
from ioa.ports.group_log import UnreadableEntryError
from ioa.protocol import subjects
from ioa.protocol.dead_letters import DeadReason
from ioa.runtime.group_metrics import unreadable

_MAX_REMEMBERED = 10_000

_log = structlog.get_logger(__name__)


class UnreadableEntries:
    """Notes entries that cannot be read, for whoever comes across them."""

    def __init__(self, dead: DeadLetters) -> None:
        self._dead = dead
        self._noted: OrderedDict[int, None] = OrderedDict()

    async def note(self, error: UnreadableEntryError) -> None:
        """Count an entry, and put a copy aside when it is met for the first time. Raises nothing but cancellation."""
        unreadable.inc()
        if error.seq in self._noted:
            return
        _log.error("group_unreadable", comm_id=error.comm_id, seq=error.seq, error=error.message)
        try:
            key = f"{error.comm_id}/{error.seq}"
            subject = subjects.log(error.comm_id)
            await self._dead.put(DeadReason.UNREADABLE_ENTRY, str(error), subject=subject, data=error.data, key=key)
        except UnavailableError as failure:
            _log.warning("not_set_aside", comm_id=error.comm_id, seq=error.seq, error=failure.message)
            return
        self._noted[error.seq] = None
        if len(self._noted) > _MAX_REMEMBERED:
            self._noted.popitem(last=False)
