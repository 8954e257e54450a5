"""Requests that schemathesis generates from the description of the gateway, for each of its routes.

The gateway is a real one, on its own control plane, whose agent concludes each goal at once.
"""

from __future__ import annotations

import asyncio
import sys
from datetime import timedelta
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from ioa.concurrency import beside
from ioa.protocol.ids import PoolId
from ioa_testkit.planes import open_nats_plane
from tests.contract.system_client.members import ADA, BOB, Members
from tests.integration.gateway.serving import Door, open_door, open_gateway

SCHEMATHESIS = [str(Path(sys.executable).with_name("uv")), "tool", "run", "--quiet", "schemathesis@4.32.5", "run"]
OPTIONS = [
    "--checks=not_a_server_error",
    "--phases=fuzzing",
    "--max-examples=60",
    "--seed=1",
    "--exclude-path-regex=^/v1/events$",  # this stream does not end
    "--continue-on-failure",
    "--request-timeout=30",
    "--warnings=off",
    "--no-color",
]
_LOOK_SECONDS = 0.05
_REGISTERED_EVERY = timedelta(seconds=10)


async def _stay(members: Members) -> None:
    """Register the agents again before their leases expire."""
    while True:
        await members.register(ADA, BOB)
        await asyncio.sleep(_REGISTERED_EVERY.total_seconds())


async def _advance_clock(door: Door) -> None:
    """Advance the gateway's clock, so that the rate limit of the key rejects few requests."""
    while True:
        door.clock.advance(timedelta(minutes=1))
        await asyncio.sleep(_LOOK_SECONDS)


@pytest.mark.http
@pytest.mark.timeout(1200)
async def test_generated_request_gets_no_server_error(tmp_path: Path) -> None:
    """No response has a status of 500 or above."""
    with capture_logs():
        async with open_nats_plane(tmp_path) as plane, open_door(plane) as door:
            members = Members(plane)
            async with beside(plane.network.take_goals(ADA, PoolId(ADA), members.given, max_concurrent=8, anybodys=True)):
                await members.register(ADA, BOB)
                async with open_gateway(plane, door) as http, beside(members.reach_goals(), _stay(members), _advance_clock(door)):
                    header = f"--header=Authorization: {http.headers['authorization']}"
                    process = await asyncio.create_subprocess_exec(
                        *SCHEMATHESIS, *OPTIONS, header, str(http.base_url.join("openapi.json"))
                    )
                    assert await process.wait() == 0
