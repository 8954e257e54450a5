"""The contract runs on the shipped fake and on SQLite in a file."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from ioa.adapters.sqlite_store import open_sqlite_store
from ioa.ports.agent_store import AgentStore
from ioa.testing.memory_store import MemoryStore


@pytest.fixture(params=["memory", "sqlite"])
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[AgentStore]:
    """An empty memory."""
    if request.param == "memory":
        yield MemoryStore()
        return
    async with open_sqlite_store(tmp_path / "memory.sqlite") as opened:
        yield opened
