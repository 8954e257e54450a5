"""Replies go to any subject that a request names: permissions do not cover reply subjects, accounts do."""

from __future__ import annotations

import asyncio

import pytest
from nats.aio.msg import Msg

from ioa.adapters.nats.auth.roles import WHO_AM_I, of_agent, of_auditor, of_gateway, of_observer, of_user
from ioa.adapters.nats.wire.sinks import MessageSink
from ioa.protocol import subjects
from ioa.protocol.ids import PoolId
from tests.integration.security.secured import open_intruder
from tests.integration.security.town import BOB, MALLORY, SOON, USER, Town


@pytest.mark.parametrize(
    ("name", "key", "asked"),
    [
        ("eve", "seed", subjects.user("eve", subjects.LIST_AGENTS)),
        ("observer", "seed", subjects.observer("observer", subjects.LIST_AGENTS)),
        ("auditor", "seed", subjects.auditor("auditor", subjects.AUDIT_PAGE)),
        ("mallory", "mallory", subjects.agent(PoolId(MALLORY), MALLORY, subjects.MEMBERSHIPS)),
    ],
)
async def test_no_answer_is_a_request(town: Town, name: str, key: str, asked: str) -> None:
    """No reply is delivered on a subject on which agents, users, or only the gateway publish."""
    roles = (of_gateway(), of_user(USER), of_observer("observer"), of_auditor("auditor"), of_agent(BOB, PoolId(BOB)))
    targets = {one.replace("*", BOB) for role in roles for one in role.publish} - {WHO_AM_I}
    heard = list[str]()

    def hear(message: Msg) -> None:
        if "Nats-Service-Error-Code" in (message.headers or {}):
            heard.append(message.subject)

    async with open_intruder(town.secured, "admin") as admin, open_intruder(town.secured, name, key) as intruder:
        for target in targets:
            await admin.subscribe(target, future=MessageSink(hear))
        await admin.flush()
        for target in targets:
            await intruder.publish(asked, b"\xff", reply=target)
            await asyncio.sleep(0.01)  # who asks faster is told to come later, or nothing
        await intruder.request(asked, b"\xff", timeout=SOON.total_seconds())
        await admin.flush()
    assert heard == []
