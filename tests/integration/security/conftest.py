"""What the security tests share."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from tests.integration.security.town import BOB, MALLORY, Town, open_town
from tests.rig.tracebacks import tracebacks


@pytest.fixture(autouse=True)
def no_tracebacks(tmp_path: Path) -> Iterator[None]:
    """Whatever was tried, no process may have logged an error that nobody foresaw."""
    yield
    logged = {log.name: tracebacks(log) for log in tmp_path.rglob("*.log")}
    assert not any(logged.values()), logged


@pytest.fixture
async def town(tmp_path: Path) -> AsyncIterator[Town]:
    """A system with bob and mallory."""
    async with open_town(tmp_path, (BOB, MALLORY)) as opened:
        yield opened
