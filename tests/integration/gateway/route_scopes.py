"""The scopes that each route of the gateway requires, measured with keys that lack one scope.

`python -m tests.integration.gateway.route_scopes` writes the golden table.
"""

from __future__ import annotations

import asyncio
import tempfile
from datetime import timedelta
from pathlib import Path

import httpx

from ioa.protocol.operation.api_keys import Scope
from ioa_testkit.planes import open_nats_plane
from tests.integration.gateway.serving import ROUTES, Door, key, open_door, open_gateway
from tests.integration.gateway.test_keys import bearer

GOLDEN = Path(__file__).parents[2] / "data" / "authorization" / "routes.txt"
_NAMES = {"goal_id": "g1", "comm_id": "g1", "webhook_id": "w1", "name": "anna", "pool": "ada", "seq": "1", "number": "0"}
_OTHERS = (("POST", "/mcp"), ("GET", "/a2a/network/tasks"), ("POST", "/a2a/network/message:send"), ("POST", "/a2a/network"))
"""Routes of other protocols. Which scopes they require depends on the operation, see the tests of A2A and MCP."""


async def measure(http: httpx.AsyncClient, door: Door) -> str:
    """Write one line for each route: the scopes without which a key is rejected, or `any key`, or `no key`."""
    scopes = list(Scope)
    for number, scope in enumerate(scopes):
        await door.keys.put(key(f"no-{number}", *(one for one in scopes if one is not scope)))
    all_routes = [*(one[:2] for one in ROUTES), *_OTHERS]
    lines: list[str] = []
    for method, path in all_routes:
        door.clock.advance(timedelta(seconds=2))
        told = {scope: await _status(http, method, path, f"no-{number}") for number, scope in enumerate(scopes)}
        assert 401 not in told.values(), f"{method} {path}: a key is not known"
        needed = [scope for scope, status in told.items() if status == 403]
        key_id = f"only-{len(lines)}"
        await door.keys.put(key(key_id, *(needed or scopes[:1])))
        door.clock.advance(timedelta(seconds=2))
        opened = await _status(http, method, path, key_id)
        assert not needed or opened not in {401, 403}, f"{method} {path}: {opened} with {needed}"
        unknown = await _status(http, method, path, "unknown")
        lines.append(f"{method} {path} | {' '.join(sorted(needed)) or ('any key' if unknown == 401 else 'no key')}")
    return "\n".join(["route | scopes", *sorted(lines), ""])


async def _status(http: httpx.AsyncClient, method: str, path: str, key_id: str) -> int:
    url = f"{str(http.base_url).removesuffix('/v1/')}{path.format(**_NAMES)}"
    async with http.stream(method, url, headers=bearer(key_id)) as answer:
        return answer.status_code


async def _write(folder: Path) -> None:
    async with open_nats_plane(folder) as plane, open_door(plane) as door, open_gateway(plane, door) as http:
        GOLDEN.write_text(await measure(http, door), encoding="utf-8")  # nothing else runs


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as made:
        asyncio.run(_write(Path(made)))
