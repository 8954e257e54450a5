"""The store of the audit log."""

from __future__ import annotations

from typing import Protocol

from ioa.protocol.audit import AuditLine


class AuditSink(Protocol):
    """Stores lines."""

    async def put(self, line: AuditLine, *, key: str) -> None:
        """Store a line; a line with the same `key` is a duplicate.

        Raises:
            UnavailableError: The line cannot be stored now.
        """
