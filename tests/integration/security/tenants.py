"""One nats-server with two tenants, in which everybody bears the same names."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from ioa.adapters.nats.server import open_nats_server
from ioa.cli.credentials import AUTHORIZATION, create_credentials, in_folder, plan_of
from ioa.cli.terminal import Terminal
from ioa.protocol.ids import TenantId
from ioa.testing.manual_clock import NEW_YEAR
from tests.integration.security.secured import Secured, secured_by

ONE, TWO = TenantId("one"), TenantId("two")


@asynccontextmanager
async def open_tenants(folder: Path, pools: Sequence[str], *limits_of_two: str) -> AsyncIterator[tuple[Secured, Secured]]:
    """Run it with credentials for the services, pools, a user and one of each role of both tenants."""
    credentials = folder / "credentials"
    for tenant, limits in ((ONE, ()), (TWO, limits_of_two)):
        plan = plan_of(pools, ["user"], ["observer"], ["admin"], ["auditor"], tenant=tenant, limits=limits)
        await asyncio.to_thread(create_credentials, credentials, plan, Terminal(as_json=True), now=NEW_YEAR)
    authorization = await asyncio.to_thread((credentials / AUTHORIZATION / "authorization.conf").read_text)
    async with open_nats_server(folder / "nats", None, authorization=authorization) as server:
        one, two = (secured_by(server, credentials / in_folder(tenant, ""), folder / "logs" / tenant) for tenant in (ONE, TWO))
        yield one, two
