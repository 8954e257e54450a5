"""Replies go to any subject that a request names: permissions do not cover reply subjects, accounts do."""

from __future__ import annotations

import asyncio
from itertools import product

from nats.aio.msg import Msg

from ioa.adapters.nats.auth.roles import WHO_AM_I, of_agent, of_auditor, of_gateway, of_observer, of_user
from ioa.adapters.nats.streams.topology import CARDS
from ioa.adapters.nats.wire.subscriptions import MessageSink
from ioa.protocol import subjects
from ioa.protocol.ids import GoalId, GoalName, PoolId
from tests.integration.security.secured import open_intruder
from tests.integration.security.town import BOB, MALLORY, SOON, USER, Town


async def test_reply_is_delivered_on_no_subject_of_a_request_stream_or_inbox(town: Town) -> None:
    """No service replies on a subject on which agents, users, the gateway or services publish, or of which a stream stores."""
    roles = (of_gateway(), of_user(USER), of_observer("observer"), of_auditor("auditor"), of_agent(BOB, PoolId(BOB)))
    goal = GoalName(USER, GoalId("report"))
    targets = {one.replace("*", BOB) for role in roles for one in role.publish} - {WHO_AM_I}
    targets |= {
        subjects.log(goal.comm_id),
        subjects.result_of(goal),
        subjects.live_progress(USER, goal.comm_id),
        subjects.dead("failed"),
    }
    targets |= {subjects.inbox(BOB, town.agents[BOB].nonce), f"$KV.{CARDS}.{BOB}"}
    asked = {
        ("eve", "seed"): [subjects.user("eve", name) for name in (subjects.LIST_AGENTS, subjects.DEAD_PAGE)],
        ("observer", "seed"): [subjects.observer("observer", subjects.LIST_AGENTS)],
        ("auditor", "seed"): [subjects.auditor("auditor", subjects.AUDIT_PAGE)],
        (MALLORY, MALLORY): [subjects.agent(PoolId(MALLORY), MALLORY, subjects.MEMBERSHIPS)],
    }
    heard = list[str]()

    def hear(message: Msg) -> None:
        if "Nats-Service-Error-Code" in (message.headers or {}):
            heard.append(message.subject)

    async with open_intruder(town.secured, "admin") as admin:
        for target in targets:
            await admin.subscribe(target, future=MessageSink(hear))
        await admin.flush()
        for (name, key), requests in asked.items():
            async with open_intruder(town.secured, name, key) as intruder:
                for target, request in product(targets, requests):
                    await intruder.publish(request, b"\xff", reply=target)
                    await asyncio.sleep(0.01)  # a caller above its rate is delayed
                await intruder.request(requests[0], b"\xff", timeout=SOON.total_seconds())
        await admin.flush()
    assert heard == []
