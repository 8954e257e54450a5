"""The pytest plugin of the package: the fixture `ioa_system`. It imports the system only when a test uses the fixture."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from ioa_testkit.system import System


def pytest_configure(config: pytest.Config) -> None:
    """Ignore a warning of nats-py on Python 3.12 and newer, which fails tests of authors that make warnings errors."""
    config.addinivalue_line("filterwarnings", "ignore:datetime.datetime.utcnow:DeprecationWarning")


@pytest.fixture
def ioa_system(tmp_path: Path) -> System:
    """Return a system for the agents of a test, on a real nats-server."""
    from ioa_testkit.system import System

    return System(tmp_path / "ioa")
