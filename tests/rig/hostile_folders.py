"""Folders as code of strangers leaves them: too deep for paths and calls, or closed, which binds no root."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

_NOBODY = 65_534


def dig(folder: Path, depth: int, name: str = "d", size: int = 0) -> None:
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
