"""A control plane with agents whose words a test decides, and a gateway on it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import httpx
import pytest
from structlog.testing import capture_logs

from ioa.concurrency import beside
from ioa.protocol.ids import PoolId
from ioa_testkit.planes import Plane, open_plane
from tests.contract.system_client.members import ADA, BOB, Members
from tests.integration.gateway.serving import Door, open_door, open_gateway


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    """Keep logs out of the way."""
    with capture_logs():
        yield


@pytest.fixture
async def plane(nats_url: str) -> AsyncIterator[Plane]:
    """A control plane without agents."""
    async with open_plane(nats_url) as opened:
        yield opened


@pytest.fixture
async def members(plane: Plane) -> AsyncIterator[Members]:
    """Agents that say what a test has them say."""
    members = Members(plane)
    async with beside(plane.network.take_goals(ADA, PoolId(ADA), members.given, max_concurrent=8, anybodys=False)):
        await members.register(ADA, BOB)
        yield members


@pytest.fixture
async def door(plane: Plane) -> AsyncIterator[Door]:
    """What a test changes of the gateway while it runs."""
    async with open_door(plane) as door:
        yield door


@pytest.fixture
async def http(plane: Plane, door: Door) -> AsyncIterator[httpx.AsyncClient]:
    """A client of a gateway."""
    async with open_gateway(plane, door) as http:
        yield http
