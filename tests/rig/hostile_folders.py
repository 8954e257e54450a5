"""Folders as untrusted code leaves them: too deep for paths and recursive calls."""

from __future__ import annotations

import os
from pathlib import Path


def dig(folder: Path, depth: int) -> None:
    """Create folders in each other, and an empty file in the last one."""
    folder.mkdir(parents=True, exist_ok=True)
    handle = os.open(folder, os.O_RDONLY)
    for _ in range(depth):
        os.mkdir("d", dir_fd=handle)
        inner = os.open("d", os.O_RDONLY, dir_fd=handle)
        os.close(handle)
        handle = inner
    os.close(os.open("end", os.O_WRONLY | os.O_CREAT, dir_fd=handle))
    os.close(handle)
