"""The suite runs on a real nats-server with the real services."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from ioa.concurrency import beside
from ioa.protocol.ids import PoolId
from ioa_testkit.planes import Plane, open_plane
from tests.contract.system_client.members import ADA, BOB, Members


@pytest.fixture
async def plane(nats_url: str) -> AsyncIterator[Plane]:
    """A control plane without agents."""
    async with open_plane(nats_url) as opened:
        yield opened


@pytest.fixture
async def members(plane: Plane) -> AsyncIterator[Members]:
    """Ada and Bob, registered and online; Ada takes her goals."""
    members = Members(plane)
    await members.register(ADA, BOB)
    async with beside(plane.network.take_goals(ADA, PoolId(ADA), members.given, max_concurrent=8, anybodys=False)):
        yield members
