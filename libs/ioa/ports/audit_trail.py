"""Keeping the audit log, and reading it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from ioa.protocol.audit import AuditLine


class AuditSink(Protocol):
    """Where services keep lines."""

    async def put(self, line: AuditLine, *, key: str) -> None:
        """Keep a line; the same `key` again is the same line.

        Raises:
            UnavailableError: It cannot be kept now.
        """


@dataclass(frozen=True)
class AuditPage:
    """Lines with their numbers, newest first, and the number to go on before; None when there are no older ones."""

    lines: Sequence[tuple[int, AuditLine]]
    before: int | None
