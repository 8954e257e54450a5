"""Exit codes of commands and processes."""

from __future__ import annotations

from enum import IntEnum


class ExitCode(IntEnum):
    """The exit code of a command."""

    DONE = 0
    FAILED = 1
    BAD_USE = 2
    UNREACHABLE = 3
    INTERRUPTED = 130
