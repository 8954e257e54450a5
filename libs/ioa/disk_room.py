"""What files of running tasks take of a disk: together no more than they leave of it.

What an agent remembers lies there too, as does what all agents of its process do: who filled it would have stopped all of them.
"""

from __future__ import annotations

import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ioa.errors import TaskError


class DiskRoom:
    """Counts what was written into folders, each until it is gone. Its members may be used from any thread."""

    def __init__(self) -> None:
        self._taken: dict[Path, int] = {}
        """How many bytes each folder has that was there when it was last looked at, with those that are being written."""
        self._coming: dict[Path, int] = {}
        """How many more are being written, for which room is still free, or was a moment ago."""
        self._counting = threading.Lock()

    @contextmanager
    def taken(self, folder: Path, in_all: int, what: str) -> Iterator[None]:
        """Have room for what is written into a folder in the block, by one at a time.

        Args:
            folder: The folder. It may be made in the block; the one that it lies in is there.
            in_all: How many bytes it has then.
            what: What is written, as an error calls it.

        Raises:
            TaskError: What is in all folders would take more of the disk than it leaves.
        """
        with self._counting:
            for gone in [one for one in self._taken if one not in self._coming and not one.exists()]:
                del self._taken[gone]
            free, taken = shutil.disk_usage(folder.parent).free - sum(self._coming.values()), sum(self._taken.values())
            more = in_all - self._taken.get(folder, 0)
            if taken + more > free - more:
                raise TaskError(
                    f"The disk has no room for {what}: {free:,} are free, and files that running tasks work on or have made take"
                    f" {taken:,}.",
                    hint="Files of tasks may take half of what is free. Make room, or give smaller files.",
                )
            self._taken[folder], self._coming[folder] = in_all, max(more, 0)
        try:
            yield
        finally:
            with self._counting:
                del self._coming[folder]


ROOM_OF_TASKS = DiskRoom()
"""That of all tasks of this process, whichever of its agents does them."""
