"""Agents at work, without processes."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from tests.unit.agent.company import Company, open_company


@pytest.fixture
async def company(tmp_path: Path) -> AsyncIterator[Company]:
    """An empty company."""
    async with open_company(tmp_path) as opened:
        yield opened


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    """Keep logs out of the way: outside a process they are drawn in colour, which takes longer than a loop may be held up."""
    with capture_logs():
        yield
