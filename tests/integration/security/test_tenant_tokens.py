"""A token that names a tenant lets into that tenant, by the one auth callout that a server has."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path

from nats.aio.msg import Msg

from ioa.adapters.nats.system_client import NatsSystemClient
from ioa.adapters.nats.wire.connection import NatsSettings, open_connection
from ioa.adapters.nats.wire.embedded_server import open_nats_server
from ioa.cli.credentials import authorization_file, create, in_folder
from ioa.cli.output.terminal import Terminal
from ioa.protocol import subjects
from ioa.protocol.ids import TenantId, UserId
from tests.integration.security.secured import open_intruder, secured_by
from tests.integration.security.test_third_parties import open_callout
from tests.integration.security.town import SOON
from tests.rig.deadline import eventually

ACME, UMBRA = TenantId("acme"), TenantId("umbra")
ZOE = UserId("zoe")


async def test_a_guest_is_one_of_the_tenant_that_its_token_names(tmp_path: Path) -> None:
    """What she publishes is heard in that tenant and in no other, though she is known to neither by a key."""
    keys = tmp_path / "credentials"
    edit = partial(create, Terminal(as_json=True), out=keys, admin=["admin"])
    await asyncio.to_thread(edit, observer=["observer"], callout=True)
    for named_tenant in (ACME, UMBRA):
        await asyncio.to_thread(edit, tenant=named_tenant)
    rendered = authorization_file(keys)
    heard: list[str] = []
    async with AsyncExitStack() as stack:
        authorization = await asyncio.to_thread(rendered.read_text)
        server = await stack.enter_async_context(open_nats_server(tmp_path / "nats", None, authorization=authorization))
        unnamed, *named = (secured_by(server, keys / in_folder(tenant, ""), tmp_path) for tenant in (None, ACME, UMBRA))
        provider = await stack.enter_async_context(open_callout(unnamed))
        for tenant, whose in zip(("", ACME, UMBRA), (unnamed, *named), strict=True):
            admin = await stack.enter_async_context(open_intruder(whose, "admin"))
            await admin.subscribe("ioa.v1.goal.>", cb=_keep(heard, tenant))
            await admin.flush()
        token = provider.token({"role": "user", "name": ZOE, "tenant": ACME}, sub="zoe")
        zoe = await stack.enter_async_context(open_connection(NatsSettings(server.url, "zoe", token=token), patience=SOON))
        assert await NatsSystemClient(zoe).user() == ZOE
        await zoe.publish(subjects.goal_of(ZOE), b"Count to ten.")
        await eventually(lambda: heard, bool, within=SOON)
        assert heard == [ACME]


def _keep(heard: list[str], tenant: str) -> Callable[[Msg], Awaitable[None]]:
    async def keep(_message: Msg) -> None:
        heard.append(tenant)

    return keep
