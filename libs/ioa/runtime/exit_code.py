"""What the caller of a command, or of a process, learns from how it ends."""

from __future__ import annotations

from enum import IntEnum


class ExitCode(IntEnum):
    """What the caller of a command learns from it."""

    DONE = 0
    FAILED = 1
    BAD_USE = 2
    UNREACHABLE = 3
    INTERRUPTED = 130
