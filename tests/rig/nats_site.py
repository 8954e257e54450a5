"""The NATS of a fault run: one nats-server or three, without credentials or with credentials of up to two tenants."""

from __future__ import annotations

import asyncio
import contextlib
import io
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from ioa.adapters.nats.wire.embedded_server import NatsServer, open_nats_server
from ioa.cli.credentials import authorization_file, create, in_folder
from ioa.cli.output.terminal import Terminal
from ioa.protocol.ids import TenantId
from tests.rig.load_brain import POOL
from tests.rig.nats_cluster import open_nats_cluster
from tests.rig.nats_server import crash

TENANTS = (None, TenantId("second"))
"""The tenant without a name, and a tenant with a name."""
_LONGEST_CRASH_SECONDS = {1: 3, 3: 10}


@dataclass(frozen=True)
class NatsSite:
    """Running nats-servers.

    Attributes:
        url: Address of all servers.
        servers: The servers.
        credentials: Folder with the seeds of each tenant; `(None,)` if clients connect without credentials.
        crash_one: Kill one server and start it again a few seconds later.
    """

    url: str
    servers: Sequence[NatsServer]
    credentials: Sequence[Path | None]
    crash_one: Callable[[random.Random], Awaitable[None]]


@asynccontextmanager
async def open_nats_site(folder: Path, *, nodes: int = 1, tenants: int = 0, agents: int = 0) -> AsyncIterator[NatsSite]:
    """Run nats-servers until the block ends.

    Args:
        folder: Contains the servers' folders and the credentials.
        nodes: 1, or 3 for a cluster.
        tenants: Number of tenants with credentials, at most 2; 0 runs servers without credentials.
        agents: Number of load agents of each tenant.
    """
    credentials: list[Path | None] = [None]
    authorization = "{}"
    if tenants:
        keys = folder / "credentials"
        await asyncio.to_thread(_create, keys, TENANTS[:tenants], agents)
        credentials = [keys / in_folder(tenant, "") for tenant in TENANTS[:tenants]]
        authorization = await asyncio.to_thread(authorization_file(keys).read_text)
    if nodes == 1:
        async with open_nats_server(folder / "nats", None, authorization=authorization) as server:
            yield NatsSite(server.url, [server], credentials, _crashing([server]))
        return
    admin = str(credentials[0] / "admin" / "seed") if credentials[0] else None
    async with open_nats_cluster(folder / "nats", authorization=authorization, seed=admin) as cluster:
        servers = list(cluster.nodes.values())
        yield NatsSite(cluster.url, servers, credentials, _crashing(servers))


def _create(keys: Path, tenants: Sequence[TenantId | None], agents: int) -> None:
    for tenant in tenants:
        with contextlib.redirect_stdout(io.StringIO()):
            create(Terminal(as_json=True), out=keys, pool=[f"{POOL}:{agents}"], admin=["admin"], tenant=tenant)


def _crashing(servers: Sequence[NatsServer]) -> Callable[[random.Random], Awaitable[None]]:
    async def crash_one(chance: random.Random) -> None:
        server = chance.choice(servers)
        await crash(server)
        await asyncio.sleep(chance.uniform(0, _LONGEST_CRASH_SECONDS[len(servers)]))
        await server.start()

    return crash_one
