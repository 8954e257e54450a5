"""Checks of free disk space, and removal of folders."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from stat import S_ISLNK

import structlog

from ioa.errors import TaskError

_OWNER_ONLY = 0o700

_log = structlog.get_logger(__name__)


def check_free_space(folder: Path, size_bytes: int, what: str) -> None:
    """Check that the disk of an existing folder has room for `size_bytes`, and that at least as much stays free.

    Raises:
        TaskError: The disk has less room.
    """
    free = shutil.disk_usage(folder).free
    if size_bytes > free // 2:
        raise TaskError(
            f"The disk has no room for {what}: {free:,} bytes are free.", hint="Free disk space, or use a smaller file."
        )


def remove_folder(folder: Path) -> None:
    """Remove a folder and its content. A link is not followed; content that cannot be removed is logged."""
    try:
        folder.chmod(_OWNER_ONLY)
        for _, names, _, handle in os.fwalk(folder):
            for name in names:
                if not S_ISLNK(os.stat(name, dir_fd=handle, follow_symlinks=False).st_mode):
                    os.chmod(name, _OWNER_ONLY, dir_fd=handle)
        shutil.rmtree(folder)
    except FileNotFoundError:
        pass
    except (OSError, RecursionError) as error:
        _log.warning("folder_not_removed", folder=str(folder), error=str(error))
