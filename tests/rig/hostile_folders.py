"""Folders as code of strangers leaves them: too deep for paths and calls, or closed, which binds no root."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count, islice
from pathlib import Path
from resource import RLIMIT_NOFILE, getrlimit, setrlimit

import pytest

_NOBODY = 65_534
_FEW, _LOOKS = 12, 1_000


def dig(folder: Path, depth: int = 3_000, name: str = "d", size: int = 0) -> None:
    """Make folders in each other, and a file of so many bytes in the last of them."""
    folder.mkdir(parents=True, exist_ok=True)
    handle = os.open(folder, os.O_RDONLY)
    for _ in range(depth):
        os.mkdir(name, dir_fd=handle)
        inner = os.open(name, os.O_RDONLY, dir_fd=handle)
        os.close(handle)
        handle = inner
    with os.fdopen(os.open("end", os.O_WRONLY | os.O_CREAT, dir_fd=handle), "wb") as file:
        file.write(bytes(size))
    os.close(handle)


@contextmanager
def as_an_ordinary_user(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Work in a folder as its owner, who is not root."""
    monkeypatch.chdir(folder)
    if os.geteuid() == 0:
        os.chown(folder, _NOBODY, _NOBODY)
        os.seteuid(_NOBODY)
    try:
        yield
    finally:
        os.seteuid(os.getuid())


@contextmanager
def few_handles() -> Iterator[None]:
    """Let this process open a few files more, of which other threads use some for a moment, and see that none stays open."""
    free = list(islice((handle for handle in count() if not _is_open(handle)), _FEW))
    limits = getrlimit(RLIMIT_NOFILE)
    setrlimit(RLIMIT_NOFILE, (free[-1] + 1, limits[1]))
    try:
        yield
    finally:
        setrlimit(RLIMIT_NOFILE, limits)
    assert any(not any(map(_is_open, free)) for _ in range(_LOOKS))


def _is_open(handle: int) -> bool:
    try:
        os.fstat(handle)
    except OSError:
        return False
    return True
