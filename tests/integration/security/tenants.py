"""One nats-server with two tenants, in which everybody bears the same names."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from ioa.adapters.nats.wire.embedded_server import open_nats_server
from ioa.cli.credentials import CredentialFolder, create, in_folder, want
from ioa.cli.terminal import Terminal
from ioa.hosting.roster import AccessRole
from ioa.protocol.ids import TenantId
from ioa.testing.manual_clock import NEW_YEAR
from tests.integration.security.secured import ONE_OF_EACH, Secured, secured_by

ONE, TWO = TenantId("one"), TenantId("two")


@asynccontextmanager
async def open_tenants(folder: Path, pools: Sequence[str], *limits_of_two: str) -> AsyncIterator[tuple[Secured, Secured]]:
    """Run it with credentials for the services, pools, a user and one of each role of both tenants."""
    keys = CredentialFolder(folder / "credentials")
    for tenant, limits in ((ONE, ()), (TWO, limits_of_two)):
        wanted = want(pools, {**ONE_OF_EACH, AccessRole.USER: ["user"]}, tenant=tenant, limits=limits)
        await asyncio.to_thread(create, keys, wanted, NEW_YEAR, Terminal(as_json=True))
    authorization = await asyncio.to_thread(keys.authorization.read_text)
    async with open_nats_server(folder / "nats", None, authorization=authorization) as server:
        one, two = (secured_by(server, keys.folder / in_folder(tenant, ""), folder / "logs" / tenant) for tenant in (ONE, TWO))
        yield one, two
