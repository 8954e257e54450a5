"""One nats-server with two tenants, in which everybody bears the same names."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

from ioa.adapters.nats.wire.embedded_server import open_nats_server
from ioa.cli.credentials import authorization_file, create, in_folder
from ioa.cli.terminal import Terminal
from ioa.protocol.ids import TenantId
from ioa.testing.manual_clock import NEW_YEAR
from tests.integration.security.secured import ONE_OF_EACH, Secured, secured_by

ONE, TWO = TenantId("one"), TenantId("two")


@asynccontextmanager
async def open_tenants(folder: Path, pools: Sequence[str], *limits_of_two: str) -> AsyncIterator[tuple[Secured, Secured]]:
    """Run it with credentials for the services, pools, a user and one of each role of both tenants."""
    keys = folder / "credentials"
    for tenant, limits in ((ONE, ()), (TWO, limits_of_two)):
        names: dict[str, Any] = {**ONE_OF_EACH, "user": ["user"]}
        edit = partial(create, Terminal(as_json=True), out=keys, pool=pools, tenant=tenant, limit=limits, now=NEW_YEAR, **names)
        await asyncio.to_thread(edit)
    authorization = await asyncio.to_thread(authorization_file(keys).read_text)
    async with open_nats_server(folder / "nats", None, authorization=authorization) as server:
        one, two = (secured_by(server, keys / in_folder(tenant, ""), folder / "logs" / tenant) for tenant in (ONE, TWO))
        yield one, two
