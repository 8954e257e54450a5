"""A small file system of its own, for tests that fill a disk to the last byte."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class SmallVolume:
    """A mounted file system. Made by `open_small_volume`."""

    folder: Path

    @property
    def _filler(self) -> Path:
        return self.folder / "filler"

    def fill(self) -> None:
        """Write until not a byte more fits."""
        with self._filler.open("wb", buffering=0) as file:
            for size in (65_536, 512, 1):
                with contextlib.suppress(OSError):
                    while file.write(b"\0" * size):
                        pass

    def free(self) -> None:
        """Make room again."""
        self._filler.unlink(missing_ok=True)


@asynccontextmanager
async def open_small_volume(folder: Path, *, size_bytes: int) -> AsyncIterator[SmallVolume]:
    """Mount a file system on an empty folder until the block ends (Linux).

    Raises:
        PermissionError: Only root may mount.
    """
    await asyncio.to_thread(folder.mkdir, parents=True)
    if await _run("mount", "-t", "tmpfs", "-o", f"size={size_bytes}", "tmpfs", str(folder)):
        raise PermissionError("A file system can be mounted by root only.")
    try:
        yield SmallVolume(folder)
    finally:
        await _run("umount", "--lazy", str(folder))


async def _run(*command: str) -> int:
    try:
        process = await asyncio.create_subprocess_exec(*command, stderr=asyncio.subprocess.DEVNULL)
    except FileNotFoundError:
        return 127
    return await process.wait()
