"""Bound what the logs of a system's processes take: one that has grown too large is put aside, in place of the one before.

The processes have their logs open, in append mode, so a log is copied and emptied instead of renamed (`copytruncate` of logrotate).
What is written in between, some lines at most, is lost.
"""

from __future__ import annotations

import asyncio
import os
import shutil
from datetime import timedelta
from pathlib import Path

import structlog

MAX_LOG_BYTES = 20_000_000
"""Of each process: so much in its log and as much beside it."""

_LOOK_EVERY = timedelta(seconds=10)

_log = structlog.get_logger(__name__)


async def keep_logs_bounded(folder: Path, *, max_bytes: int = MAX_LOG_BYTES, every: timedelta = _LOOK_EVERY) -> None:
    """Put aside every `*.log` of a folder that is larger than `max_bytes`, now and then, for ever."""
    while True:
        try:
            await asyncio.to_thread(_put_aside_large, folder, max_bytes)
        except OSError as error:
            _log.warning("logs_not_rotated", error=str(error))
        await asyncio.sleep(every.total_seconds())


def _put_aside_large(folder: Path, max_bytes: int) -> None:
    for path in folder.glob("*.log"):
        if path.stat().st_size > max_bytes:
            put_aside(path)


def put_aside(log: Path) -> None:
    """Make a log `<name>.log.1`, in place of the one that was, and begin it anew; who writes to it writes on.

    Raises:
        OSError: It cannot be written; the log is as it was.
    """
    copy = log.with_name(f"{log.name}.1")
    shutil.copyfile(log, copy.with_suffix(".part"))
    copy.with_suffix(".part").replace(copy)
    os.truncate(log, 0)
