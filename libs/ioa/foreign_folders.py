"""Folders that code of strangers has written in: gone through and removed by handles, a step at a time.

On a path a link may lie that leads elsewhere, and the kernel takes none of more than 4,096 bytes; who calls itself for each folder
in a folder ends with Python's stack, and who keeps a handle of each with what a process may open. Here four handles are open at
most, however deep folders lie in each other, and no link is followed.
"""

from __future__ import annotations

import os
from collections.abc import Generator, Iterator
from contextlib import contextmanager, suppress
from errno import ENOTEMPTY
from itertools import count
from pathlib import Path

import structlog

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW
_OPEN = 0o700
_GONE = (FileNotFoundError, NotADirectoryError)
_PASSES = 3
"""How often a folder is emptied until nothing is left: what a full disk refuses at first may go once other things have."""
_MOST_FOLDERS = 1_000_000
"""How many are removed at a time: code that still runs makes them as fast."""

_log = structlog.get_logger(__name__)


def walk(folder: Path) -> Generator[tuple[int, int, os.DirEntry[str]], None, None]:
    """Go through all that is in a folder and in the folders in it. What goes meanwhile is left out.

    Yields:
        A handle of the folder where something is, which is open until the next is asked for; in how many folders that is, this one
        included; and what it is.

    Raises:
        PermissionError: A folder is closed.
    """
    waiting: list[tuple[tuple[str, ...], list[str]]] = [((), ["."])]
    while waiting:
        way, names = waiting.pop()
        with suppress(*_GONE), _opened(folder, *way) as above:
            for name in names:
                inner: list[str] = []
                with suppress(*_GONE), _opened(name, parent=above) as handle, os.scandir(handle) as entries:
                    for entry in entries:
                        yield handle, len(way) + 1, entry
                        if entry.is_dir(follow_symlinks=False):
                            inner.append(entry.name)
                if inner:
                    waiting.append(((*way, name), inner))


def remove(folder: Path) -> None:
    """Remove a folder with all that is in it, links as links. What cannot be removed is logged, and stays: no error is raised."""
    with _noted(folder):
        _empty(folder)
        folder.rmdir()


def empty(folder: Path) -> None:
    """Remove all that is in a folder, as `remove` does."""
    with _noted(folder):
        _empty(folder)


@contextmanager
def _noted(folder: Path) -> Iterator[None]:
    try:
        yield
    except FileNotFoundError:
        pass
    except OSError as error:
        _log.warning("folder_not_removed", folder=str(folder), error=str(error))


def _empty(folder: Path) -> None:
    _open_up(folder)
    with _opened(folder) as top:
        for _ in range(_PASSES):
            _clear(top)
            if not os.listdir(top):  # noqa: PTH208 - a handle
                return
    raise OSError(ENOTEMPTY, os.strerror(ENOTEMPTY))


def _clear(top: int) -> None:
    """Remove what is in a folder. A folder in a folder in it is moved up to it before, so that none that is removed lies deeper."""
    waiting = _strip(top)
    taken = set(waiting)
    free = (name for name in map(str, count()) if name not in taken)
    for _ in range(_MOST_FOLDERS):
        if not waiting:
            return
        name = waiting.pop()
        with suppress(OSError):
            with _opened(name, parent=top) as handle:
                for inner in _strip(handle):
                    with suppress(OSError):
                        os.rename(inner, moved := next(free), src_dir_fd=handle, dst_dir_fd=top)
                        waiting.append(moved)
            os.rmdir(name, dir_fd=top)


def _strip(handle: int) -> list[str]:
    """Remove what is in a folder but for the folders in it; return their names. They are open then, as moving them takes."""
    folders = []
    with os.scandir(handle) as entries:
        for entry in entries:
            with suppress(OSError):
                if entry.is_dir(follow_symlinks=False):
                    folders.append(entry.name)
                    _open_up(entry.name, parent=handle)
                else:
                    os.unlink(entry.name, dir_fd=handle)
    return folders


def _open_up(name: str | Path, *, parent: int | None = None) -> None:
    """Let the owner of a folder do all with it. A link stays as it is, and so does all where the C library is glibc before 2.32."""
    with suppress(OSError, ValueError, NotImplementedError):
        os.chmod(name, _OPEN, dir_fd=parent, follow_symlinks=False)


@contextmanager
def _opened(name: str | Path, *way: str, parent: int | None = None) -> Iterator[int]:
    """Open a folder, by a way of names from another one if there is one."""
    handle = os.open(name, _FOLDER, dir_fd=parent)
    try:
        for step in way:
            inner = os.open(step, _FOLDER, dir_fd=handle)
            os.close(handle)
            handle = inner
        yield handle
    finally:
        os.close(handle)
