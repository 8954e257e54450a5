"""Fixtures for tests of the page in Chromium. `make test-all SUITE=browser` installs what drives it."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import AsyncIterator, Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from ioa.concurrency import beside
from ioa.protocol.ids import PoolId
from ioa_testkit.planes import Plane, open_plane
from tests.browser.staging import DESK, Stage
from tests.integration.gateway.serving import Door, open_door, open_gateway

collect_ignore_glob = [] if find_spec("playwright") else ["test_*.py"]

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
SCREENSHOTS = Path(__file__).parents[2] / "build" / "screenshots"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip tests if the machine has no browser."""
    missing = pytest.mark.skip(reason="There is no Chromium on this machine: `apt-get install chromium`.")
    for item in items:
        if item.path.is_relative_to(Path(__file__).parent):
            item.add_marker(pytest.mark.browser)
            item.add_marker(pytest.mark.blocks_loop)  # the browser driver validates messages in this loop
            if CHROMIUM is None:
                item.add_marker(missing)


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    """Keep logs out of the way."""
    with capture_logs():
        yield


@pytest.fixture(scope="session")
def screenshots() -> Path:
    """Where pictures are kept."""
    SCREENSHOTS.mkdir(parents=True, exist_ok=True)
    return SCREENSHOTS


@pytest.fixture
async def looking(screenshots: Path) -> AsyncIterator[object]:
    """A browser, for one test."""
    from tests.browser.looking import open_looking

    assert CHROMIUM is not None, "it is skipped without"
    async with open_looking(CHROMIUM, screenshots) as looking:
        yield looking


@pytest.fixture
async def plane(nats_url: str) -> AsyncIterator[Plane]:
    """A control plane without agents."""
    async with open_plane(nats_url) as opened:
        yield opened


@pytest.fixture
async def stage(plane: Plane) -> AsyncIterator[Stage]:
    """Agents that say what a test has them say."""
    stage = Stage(plane)
    async with beside(plane.network.take_goals(DESK, PoolId(DESK), stage.given, max_concurrent=8, anybodys=False)):
        await stage.enter()
        yield stage


@pytest.fixture
async def door(plane: Plane) -> AsyncIterator[Door]:
    """What a test changes of the gateway while it runs."""
    async with open_door(plane) as door:
        yield door


@pytest.fixture
async def url(plane: Plane, door: Door) -> AsyncIterator[str]:
    """Where a gateway serves the page."""
    async with open_gateway(plane, door) as http:
        yield str(http.base_url).removesuffix("/v1/")
        await asyncio.sleep(0)
