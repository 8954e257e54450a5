"""What the security tests share."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.integration.security.town import BOB, MALLORY, Town, open_town


@pytest.fixture
async def town(tmp_path: Path) -> AsyncIterator[Town]:
    """A system with bob and mallory."""
    async with open_town(tmp_path, (BOB, MALLORY)) as opened:
        yield opened
