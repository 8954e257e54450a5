"""Whose processes there are on this machine, as far as it shows them: a container shows its own alone.

A process counts for the command whose group it is in, which no code leaves.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from contextlib import suppress


def processes() -> list[str]:
    """List the ids of all processes of this machine."""
    return [name for name in os.listdir("/proc") if name.isdigit()] if sys.platform == "linux" else []  # noqa: PTH208 - hundreds


def members(group: int) -> list[str]:
    """List the ids of a group's processes."""
    return [process for process in processes() if _group_of(process) == group]


def threads(among: Iterable[str], user: int | None = None) -> int:
    """Count the threads of processes, or of those that are a user's."""
    count = 0
    for process in among:
        with suppress(OSError):  # it has ended meanwhile
            facts = os.stat(f"/proc/{process}/task")  # noqa: PTH116
            count += facts.st_nlink - 2 if user in (None, facts.st_uid) else 0
    return count


def _group_of(process: str) -> int:
    with suppress(OSError):  # it has ended meanwhile
        return os.getpgid(int(process))
    return 0
