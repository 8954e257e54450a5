"""A system as the plugin makes it, and quiet logs."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from structlog.testing import capture_logs


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    """Keep logs out of the way: outside a process they are drawn in colour, which takes longer than a loop may be held up."""
    with capture_logs():
        yield
