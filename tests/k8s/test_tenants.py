"""Tenants that an upgrade of the chart makes: users, agents and goals bear the same names, and neither is there for another."""

from __future__ import annotations

import json
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import timedelta

import pytest
from nats.aio.client import Client as Connection
from nats.aio.msg import Msg

from ioa.adapters.nats.auth.roles import WHO_AM_I
from ioa.client.client import Client, open_system
from ioa.errors import NotFoundError
from ioa.protocol.goal_order import GoalOrder
from ioa.protocol.goals import GoalResult
from ioa.protocol.ids import AgentId, GoalId
from tests.k8s.release import GATEWAY, TENANTS, ToolError, apply_chart, is_ready, open_nats, open_way, pods
from tests.rig.deadline import eventually
from tests.rig.letting_in import is_let_in

pytestmark = [
    pytest.mark.k8s,
    pytest.mark.timeout(900),
    pytest.mark.filterwarnings("ignore:.*StreamWriter:pytest.PytestUnraisableExceptionWarning"),
]

_PATIENCE = timedelta(minutes=3)
_SAME, _ALONE, _AFTER = (GoalId(f"{name}-{os.getpid()}") for name in ("same", "acme-only", "without-them"))
"""New ones in each run: a goal that is launched again under its id is the same goal, with its result."""
_STORES = {"acme": 200_000_000, "umbra": 100_000_000}
_SUMS = {"acme": (8_881_100, "88811"), "umbra": (7_772_200, "77722"), "": (6_663_300, "66633")}
"""Of what each asks 1 %, and what that is. The figures occur nowhere else."""


async def test_tenants_come_with_an_upgrade() -> None:
    """Each has services and agents of its own, and all of them are ready with those that were there before.

    What streams have set aside for themselves is taken back first, as the chart says that refuses else.
    """
    with pytest.raises(ToolError, match=r"Upgrade first with quotas.storeBytes: 643718400"):
        await apply_chart(beside=[GATEWAY, TENANTS])
    await apply_chart("quotas.storeBytes=643718400", beside=[GATEWAY])
    await apply_chart(beside=[GATEWAY, TENANTS])
    await eventually(pods, lambda found: all(map(is_ready, found)), within=_PATIENCE)
    for tenant in _STORES:
        for component in ("registry", "groups", "router", "discovery", "calculator"):
            assert len(await pods(f"{tenant}-{component}")) == 1, (tenant, component)


async def test_each_is_in_accounts_of_its_own() -> None:
    """What nats-server itself says of a tenant's credentials: whose account they are of, and how much that may store."""
    for tenant, size in _STORES.items():
        async with open_nats(f"{tenant}-anna") as user, open_nats(f"{tenant}-root") as admin:
            assert [await _account(one) for one in (user, admin)] == [f"IOA_{tenant}_USERS", f"IOA_{tenant}"]
            assert (await admin.jetstream().account_info()).limits.max_storage == size
    async with open_nats("user") as user, open_nats("admin") as admin:
        assert [await _account(one) for one in (user, admin)] == ["IOA_USERS", "IOA"]


async def test_goals_of_one_are_not_there_for_another() -> None:
    """Goals of one name run side by side in each: each ends with its own result; no admin hears another's, no user finds it."""
    heard: dict[str, list[Msg]] = {tenant: [] for tenant in _SUMS}
    async with AsyncExitStack() as stack:
        users: dict[str, Client] = {}
        for tenant in _SUMS:
            beginning = f"{tenant}-" if tenant else ""
            admin = await stack.enter_async_context(open_nats(f"{beginning}{'root' if tenant else 'admin'}"))
            await admin.subscribe(">", cb=_keep(heard[tenant]))
            await admin.flush()
            users[tenant] = await stack.enter_async_context(_open_user(f"{beginning}{'anna' if tenant else 'user'}"))
        for tenant, client in users.items():
            await client.launch(GoalOrder(goal=_goal(tenant), goal_id=_SAME, agent=AgentId("calculator")))
        results = {tenant: await client.wait_for_result(_SAME) for tenant, client in users.items()}
        assert {tenant: _sums_in(result) for tenant, result in results.items()} == {tenant: [tenant] for tenant in _SUMS}
        for tenant in _STORES:
            assert {row.record.goal.goal for row in (await users[tenant].goals()).goals} == {_goal(tenant)}
            assert [status.card.agent_id for status in await users[tenant].agents()] == ["calculator-0"]
        await users["acme"].run(GoalOrder(goal=_goal("acme"), goal_id=_ALONE, agent=AgentId("calculator")))
        for tenant in ("umbra", ""):
            with pytest.raises(NotFoundError):
                await users[tenant].goal(_ALONE)
        for tenant, messages in heard.items():
            said = b" ".join(message.data for message in messages).decode(errors="replace")
            assert {other: str(_SUMS[other][0]) in said for other in _SUMS} == {other: other == tenant for other in _SUMS}


async def test_tenants_go_with_an_upgrade() -> None:
    """NATS starts without them, though what they have stored is there; who stays goes on, and nobody of theirs is let in."""
    async with open_way("acme-anna") as anna:
        await apply_chart(beside=[GATEWAY])
        async with _open_user("user") as user:
            result = await user.run(GoalOrder(goal=_goal(""), goal_id=_AFTER, agent=AgentId("calculator")))
        assert (_sums_in(result), await pods("acme-router"), await is_let_in(anna)) == ([""], [], False)


def _goal(tenant: str) -> str:
    return f"{_SUMS[tenant][0]} / 100"


def _sums_in(result: GoalResult) -> list[str]:
    """Whose right answers are in a result."""
    return [tenant for tenant, (_, right) in _SUMS.items() if result.succeeded and right in result.content.replace(",", "").split()]


@asynccontextmanager
async def _open_user(user: str) -> AsyncIterator[Client]:
    async with open_way(user) as settings, open_system(settings, patience=_PATIENCE) as system:
        yield system


async def _account(connection: Connection) -> str:
    """The account that nats-server counts a connection to."""
    told: Mapping[str, Mapping[str, object]] = json.loads((await connection.request(WHO_AM_I, b"", timeout=5)).data)
    return str(told["data"]["account"])


def _keep(heard: list[Msg]) -> Callable[[Msg], Awaitable[None]]:
    async def keep(message: Msg) -> None:
        heard.append(message)

    return keep
