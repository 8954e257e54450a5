"""Two tenants on one nats-server, whose agents, users and goals bear the same names: neither is there for the other."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from nats.aio.msg import Msg
from nats.js.errors import APIError

from ioa.adapters.nats.inspection import open_inspection
from ioa.adapters.nats.stores.audit_stream import NatsAuditTrail
from ioa.adapters.nats.streams.topology import LOG
from ioa.adapters.nats.wire.embedded_server import open_nats_server
from ioa.cli.credentials import authorization_file, create, in_folder
from ioa.cli.doctor import Health, stores_finding
from ioa.cli.output.terminal import Terminal
from ioa.errors import NotFoundError, StoreFullError
from ioa.group.requests import LaunchGroup
from ioa.protocol import subjects
from ioa.protocol.goal_order import GoalOrder
from ioa.protocol.goals import Artifact, Reason
from ioa.protocol.ids import CommId, GoalId, GoalName, TenantId
from ioa.protocol.messages import ConcludeGroupDiscussion, Conclusion
from ioa.protocol.operation.audit import Deed
from ioa.protocol.setup.file_requests import StoredBytes
from tests.integration.security.secured import ONE_OF_EACH, open_intruder, secured_by
from tests.integration.security.town import BOB, MALLORY, SOON, USER, Agent, Town, open_town_on
from tests.rig.deadline import eventually

ONE, TWO = TenantId("one"), TenantId("two")
REPORT = GoalId("report")
SECRET, FORGED = "The merger is on Tuesday", b"forged by two"
EVERYBODY = [*((name, "seed") for name in ("admin", "user", "observer", "auditor", "registry", "groups", "router")), (BOB, BOB)]
EVERYTHING = (">", "ioa.v1.>", "_INBOX.>", "$JS.>", "$KV.>", "$SYS.>")
_SMALL_STORE = 6_000_000
_SLACK_SECONDS = 4.0
"""Delay of one goal on a busy machine."""


@pytest.fixture
async def towns(tmp_path: Path) -> AsyncIterator[tuple[Town, Town]]:
    """Two tenants with the same names on one server: bob works in the first, mallory and another bob in the second."""
    keys = tmp_path / "credentials"
    names: dict[str, Any] = {**ONE_OF_EACH, "user": ["user"], "pool": [BOB, MALLORY]}
    for tenant, limit in ((ONE, ()), (TWO, (f"max_file={_SMALL_STORE}",))):
        edit = partial(create, Terminal(as_json=True), out=keys, tenant=tenant, limit=limit, **names)
        await asyncio.to_thread(edit)
    authorization = await asyncio.to_thread(authorization_file(keys).read_text)
    async with AsyncExitStack() as stack:
        server = await stack.enter_async_context(open_nats_server(tmp_path / "nats", None, authorization=authorization))
        towns = []
        for tenant, agents in ((ONE, (BOB,)), (TWO, (BOB, MALLORY))):
            secured = secured_by(server, keys / in_folder(tenant, ""), tmp_path / "logs" / tenant)
            towns.append(await stack.enter_async_context(open_town_on(secured, agents)))
        yield towns[0], towns[1]


async def test_what_one_tenant_does_is_not_there_for_another(towns: tuple[Town, Town], tmp_path: Path) -> None:
    """While a goal with files is worked at, nobody of the other tenant hears, reads, lists, changes or ends anything of it."""
    one, two = towns
    (tmp_path / "plan.txt").write_text(SECRET)
    name, comm_id = GoalName(USER, REPORT), GoalName(USER, REPORT).comm_id
    heard: list[Msg] = []
    async with AsyncExitStack() as stack:
        listeners = [await stack.enter_async_context(open_intruder(two.secured, *who)) for who in EVERYBODY]
        for listener in listeners:
            for subject in EVERYTHING:
                await listener.subscribe(subject, cb=_keep(heard))
            await listener.flush()
        await one.user.submit(GoalOrder(goal=SECRET, goal_id=REPORT, agent=BOB), [tmp_path / "plan.txt"])
        await one.given((USER, REPORT))
        with pytest.raises(NotFoundError):
            await two.user.cancel(REPORT, "They must not.")
        admin = listeners[0]
        for subject in (subjects.log(comm_id), subjects.inbox(BOB, one.agents[BOB].nonce), subjects.result_of(name)):
            await admin.publish(subject, FORGED)
        await admin.request(f"$JS.API.STREAM.PURGE.{LOG}")
        made = await _report(one.agents[BOB], comm_id)
        result = await one.user.wait_for_result(REPORT)
        assert (result.reason, result.content, await one.user.fetch(made)) == (Reason.CONCLUDED, SECRET, SECRET.encode())

        with pytest.raises(NotFoundError):
            await two.user.fetch(made)
        with pytest.raises(NotFoundError):
            await two.user.find_goal(REPORT)
        assert not [*(await two.user.goals()).goals, *(await two.user.groups()).groups, *(await two.user.stored()).owners]
        assert {status.card.agent_id for status in await one.user.agents()} == {BOB}
        assert {status.card.agent_id for status in await two.user.agents()} == {BOB, MALLORY}
        lines = (await NatsAuditTrail(admin).page(limit=100)).lines
        assert {line.deed for _, line in lines} <= {Deed.JOINED, Deed.CANCELLED}
        js, kept = admin.jetstream(), list[bytes]()
        for stream in await js.streams_info():
            for seq in range(stream.state.first_seq, stream.state.last_seq + 1):
                try:
                    kept.append((await js.get_msg(str(stream.config.name), seq)).data or b"")
                except APIError:  # it was removed
                    continue
        assert kept
        seen = [*kept, *(message.data for message in heard), *(message.subject.encode() for message in heard)]
        assert not [one for one in seen if SECRET.encode() in one]
        own = {subjects.log(comm_id), subjects.result_of(name)}
        assert {message.data for message in heard if message.subject in own} <= {FORGED}


@pytest.mark.slow
async def test_what_one_tenant_uses_up_is_its_own(towns: tuple[Town, Town]) -> None:
    """While the store of one tenant is full, goals of another tenant take at most three times their usual time."""
    one, two = towns
    usual = await one.lead_one()
    async with open_intruder(two.secured, "admin") as admin:
        for size in (500_000, 5_000, 50):
            with pytest.raises(APIError, match="resource limits exceeded for account"):
                for _ in range(_SMALL_STORE // size):
                    await admin.jetstream().publish(subjects.result_of(GoalName(USER, GoalId("filler"))), bytes(size))
    with pytest.raises(StoreFullError):
        await two.user.submit(GoalOrder(goal="Count to ten.", agent=BOB))
    beside_full = await one.lead_one()
    assert beside_full <= 3 * usual + _SLACK_SECONDS, f"{beside_full:.2f} s; usual {usual:.2f}"
    for town, found in zip(towns, ((ONE, Health.OK), (TWO, Health.PROBLEM)), strict=True):
        await eventually(lambda town=town: _examined(town), lambda seen, found=found: seen == found, within=SOON)  # type: ignore[misc]


def _keep(heard: list[Msg]) -> Callable[[Msg], Awaitable[None]]:
    async def keep(message: Msg) -> None:
        heard.append(message)

    return keep


async def _report(bob: Agent, comm_id: CommId) -> Artifact:
    """Lead the goal: put a file and conclude."""
    launch = LaunchGroup(
        owner=BOB, members=(), goal_id=REPORT, user=USER, session=bob.session.session, ticket=bob.given.ticket_of(REPORT, USER)
    )
    state = (await bob.network.launch(launch)).state
    made = await bob.network.put_file(BOB, comm_id, "minutes", "minutes.txt", SECRET.encode(), "text/plain", bob.session.session)
    state = await bob.say(state, ConcludeGroupDiscussion(), 0)
    await bob.say(state, Conclusion(content=SECRET, artifacts=(made,)), 1)
    return made


async def _examined(town: Town) -> tuple[TenantId | None, Health]:
    """Whose system the doctor says it is to a tenant's observer, and how its store stands."""
    async with open_inspection(town.secured.settings("observer"), patience=SOON) as inspection:
        standing = await inspection.standing()
        assert standing is not None
        return await inspection.tenant(), stores_finding(standing, StoredBytes(owners=(), size_bytes=0)).health
