"""An agent's memory in a file, and after a kill."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from ioa.adapters.sqlite_store import SqliteStore, open_sqlite_store


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[SqliteStore]:
    """An empty memory."""
    async with open_sqlite_store(tmp_path / "memory.sqlite") as opened:
        yield opened


@pytest.fixture
async def after_kill(store: SqliteStore, tmp_path: Path) -> AsyncIterator[Callable[[], Awaitable[SqliteStore]]]:
    """Give the memory as the next process finds it when this one is killed now: what the file held, which is copied."""
    async with AsyncExitStack() as opened:

        async def open_again() -> SqliteStore:
            copy = tmp_path / "copy" / "memory.sqlite"
            await asyncio.to_thread(_copy, tmp_path / "memory.sqlite", copy)
            return await opened.enter_async_context(open_sqlite_store(copy))

        yield open_again


def _copy(path: Path, to: Path) -> None:
    to.parent.mkdir()
    for suffix in ("", "-wal"):
        if path.with_name(path.name + suffix).exists():
            shutil.copy(path.with_name(path.name + suffix), to.with_name(to.name + suffix))
