"""Throw examples at every route of a gateway, made of its own description by schemathesis: `python -m tests.http_examples`.

The gateway is a real one, on a control plane of its own, whose agent concludes each goal at once. No request may be
answered by an error of the server (5xx). Schemathesis is installed into an environment of its own, since nothing else needs it.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
import venv
from datetime import timedelta
from pathlib import Path

from structlog.testing import capture_logs

from ioa.concurrency import beside
from ioa.protocol.ids import PoolId
from ioa_testkit.planes import open_nats_plane
from tests.contract.system_client.members import ADA, BOB, Members
from tests.integration.gateway.serving import Door, open_door, open_gateway

SCHEMATHESIS = "schemathesis==4.32.5"
ENDLESS = "^/v1/events$"
"""A list of goals is followed until somebody leaves; all other streams end with their goal."""
_LOOK_SECONDS = 0.05
_REGISTERED_EVERY = timedelta(seconds=10)


async def _stay(members: Members) -> None:
    """Keep the agents online."""
    while True:
        await members.register(ADA, BOB)
        await asyncio.sleep(_REGISTERED_EVERY.total_seconds())


async def _let_time_pass(door: Door) -> None:
    """Let a minute of a key's limits pass in each moment, so that what lies behind them is reached."""
    while True:
        door.clock.advance(timedelta(minutes=1))
        await asyncio.sleep(_LOOK_SECONDS)


async def throw(schemathesis: str, examples: int, seed: int) -> int:
    """Run schemathesis against a gateway, and return its exit code.

    Args:
        schemathesis: Its command.
        examples: How many of each route.
        seed: Of its choices.
    """
    with tempfile.TemporaryDirectory() as folder:
        return await _throw(schemathesis, examples, seed, Path(folder))


async def _throw(schemathesis: str, examples: int, seed: int, folder: Path) -> int:
    async with open_nats_plane(folder) as plane, open_door(plane) as door:
        members = Members(plane)
        async with beside(plane.network.take_goals(ADA, PoolId(ADA), members.given, max_concurrent=8, anybodys=True)):
            await members.register(ADA, BOB)
            async with open_gateway(plane, door) as http, beside(members.reach_goals(), _stay(members), _let_time_pass(door)):
                process = await asyncio.create_subprocess_exec(
                    *(schemathesis, "run", str(http.base_url.join("openapi.json"))),
                    *("--header", f"Authorization: {http.headers['authorization']}", "--exclude-path-regex", ENDLESS),
                    *(
                        "--checks",
                        "not_a_server_error",
                        "--phases",
                        "fuzzing",
                        "--max-examples",
                        str(examples),
                        "--seed",
                        str(seed),
                    ),
                    *("--continue-on-failure", "--request-timeout", "30", "--warnings", "off", "--no-color"),
                )
                return await process.wait()


def main() -> int:
    """Read the command line, install and throw."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--examples", type=int, default=60, help="of each route (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="ioa-http-examples-") as folder:
        venv.create(folder, with_pip=True)
        binaries = Path(folder) / "bin"
        asyncio.run(_installed(str(binaries / "python")))
        with capture_logs():
            return asyncio.run(throw(str(binaries / "schemathesis"), options.examples, options.seed))


async def _installed(python: str) -> None:
    install = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", SCHEMATHESIS]
    process = await asyncio.create_subprocess_exec(*install)
    if await process.wait():
        raise SystemExit(f"{SCHEMATHESIS} cannot be installed here.")


if __name__ == "__main__":
    sys.exit(main())
