"""Agents at work, without processes."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.unit.agent.company import Company, open_company


@pytest.fixture
async def company(tmp_path: Path) -> AsyncIterator[Company]:
    """An empty company."""
    async with open_company(tmp_path) as opened:
        yield opened
