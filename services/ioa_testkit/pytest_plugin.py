"""The pytest plugin that comes with the package. Without the fixture it imports nothing but itself."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from ioa_testkit.system import System

_MEMORY, _NATS = "memory", "nats"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option that takes every test to a real nats-server."""
    group = parser.getgroup("ioa", "agents of an Internet of Agents")
    group.addoption("--ioa-nats", action="store_true", help="run the systems of ioa_system on a real nats-server, not in memory")


@pytest.fixture
def ioa_system(request: pytest.FixtureRequest, tmp_path: Path) -> System:
    """Return a whole system for the agents of a test, in memory unless `--ioa-nats` or the parameter `nats` asks for a server."""
    from ioa_testkit.system import System

    asked = getattr(request, "param", _NATS if request.config.getoption("--ioa-nats") else _MEMORY)
    if asked not in (_MEMORY, _NATS):
        pytest.fail(f"ioa_system takes the parameter {_MEMORY!r} or {_NATS!r}, not {asked!r}.", pytrace=False)
    if asked == _NATS:
        _skip_without_server()
    return System(tmp_path / "ioa", on_nats=asked == _NATS)


def _skip_without_server() -> None:
    from ioa.adapters.nats.server import find_nats_server
    from ioa.errors import MissingExtraError

    try:
        find_nats_server()
    except MissingExtraError as error:
        pytest.skip(str(error))
