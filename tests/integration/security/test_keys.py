"""Keys are replaced and revoked while goals run: nobody is restarted, and no goal is lost."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path

import pytest

import ioa.client.client as client_module
from ioa.adapters.nats.stores.api_key_store import NatsApiKeys
from ioa.adapters.nats.stores.audit_stream import NatsAuditTrail
from ioa.adapters.nats.streams.topology import GOALS_OPEN
from ioa.adapters.nats.wire.connection import NotLetInError, open_connection
from ioa.adapters.secret_stores.nkeys import read_key
from ioa.cli.credentials import render, revoke, rotate
from ioa.cli.goal_commands import cancel_user_goals
from ioa.cli.http_keys import create
from ioa.cli.http_keys import revoke as revoke_key
from ioa.cli.output.terminal import Terminal
from ioa.client.client import Client, open_system
from ioa.errors import ForbiddenError, InvalidInputError, UnavailableError
from ioa.hosting.connecting import connect
from ioa.protocol.goal_order import GoalOrder
from ioa.protocol.goals import GoalResult, Reason
from ioa.protocol.ids import AgentId, GoalId, GoalName, UserId
from ioa.protocol.operation.audit import Deed
from ioa.protocol.registry import RemoveAgent
from tests.integration.security.secured import SERVICES, Secured, open_secured
from tests.rig.deadline import eventually

_BRIEFLY, _SOON = timedelta(milliseconds=100), timedelta(seconds=30)
_QUICK = {"IOA_TASK_LEASE": "2", "IOA_LEASE": "3", "IOA_RENEW_EVERY": "1"}
"""How soon somebody who is gone is missed."""
_MINUTE = timedelta(seconds=60)
_HOST = """
from ioa import Agent

agent = Agent("host", description="Greets guests by their names.", may_team_up=False)

@agent.task
async def greet(task: str) -> str:
    return "Hello."
"""
_WAITER = """
import asyncio
from pathlib import Path

from ioa import Agent

agent = Agent("waiter", description="Waits for trains and buses.", examples=["wait for the train", "wait for the bus to Rome"])
HERE = Path(__file__).parent

@agent.task
async def wait(task: str) -> str:
    while not (HERE / "go-on").exists():
        await asyncio.sleep(0.05)
    return "The train is there."
"""
_QUIET = Terminal(as_json=True)
_MORE_THAN_OPEN = GOALS_OPEN + 3


@dataclass(frozen=True)
class House:
    """A system of two waiters, each with its key, whose tasks last until they are let go on."""

    secured: Secured
    user: Client
    folder: Path
    programs: Sequence[str]

    def at_work(self) -> set[str]:
        """Which agents have begun a task."""
        return self._who_logged("task_begun")

    def disconnected(self) -> set[str]:
        """Whose connection has ended."""
        return self._who_logged("nats_disconnected")

    def reconnected(self) -> set[str]:
        """Who has connected again."""
        return self._who_logged("nats_reconnected")

    def _who_logged(self, event: str) -> set[str]:
        logs = self.folder / "logs"
        return {name for name in self.programs if f'"{event}"' in (logs / f"{name}.log").read_text(encoding="utf-8")}

    async def begin(self, *goals: str) -> list[GoalId]:
        """Launch goals for the waiters, and return when as many are at work."""
        launched = [await self.user.submit(GoalOrder(goal=goal, agent=AgentId("host"))) for goal in goals]
        await eventually(self.at_work, lambda busy: len(busy) >= len(goals), within=timedelta(seconds=15))
        return launched

    async def ends(self, goals: list[GoalId]) -> list[GoalResult]:
        """Wait for what becomes of goals."""
        async with asyncio.timeout(_MINUTE.total_seconds()):
            return [await self.user.wait_for_result(goal_id) for goal_id in goals]


@pytest.fixture
async def house(tmp_path: Path) -> AsyncIterator[House]:
    """The control plane and the waiters, as processes with seeds of their own."""
    (tmp_path / "waiter.py").write_text(_WAITER)
    (tmp_path / "host.py").write_text(_HOST)
    (tmp_path / "logs").mkdir()
    async with AsyncExitStack() as stack:
        secured = await stack.enter_async_context(open_secured(tmp_path, ("host", "waiter:2")))
        agents = [secured.agent("host", "host", "host", tmp_path)]
        agents += [secured.agent("waiter", "waiter", f"waiter-{number}", tmp_path) for number in range(2)]
        services = [replace(one, env={**(one.env or {}), **_QUICK}) for one in map(secured.service, SERVICES)]
        programs = [*services, *agents]
        for program in programs:
            stack.push_async_callback((await secured.fork_server.start(program)).stop, 15.0)
        user = await stack.enter_async_context(open_system(secured.settings("user"), patience=_MINUTE))

        async def online() -> int:
            try:
                return min(len(await user.agents(online_only=True)), (await user.index_status()).cards)
            except UnavailableError:
                return 0

        await eventually(online, lambda count: count == 3, within=_MINUTE)
        yield House(secured, user, tmp_path, [program.name for program in programs])


async def test_keys_are_replaced_while_goals_run(house: House) -> None:
    """Agents and services continue with their new keys, with tasks and goals; the old keys connect until the next rendering."""
    goals = await house.begin("Wait for the train to London.", "Wait for the train to Paris.")
    old = house.secured.settings("waiter", "waiter-0")
    old = replace(old, seed=read_key(str(old.seed)).seed)
    folder, pid_file = house.secured.folder, house.secured.pid_file
    rotate(_QUIET, "waiter", out=folder, pid_file=pid_file)
    async with open_connection(old, patience=_SOON):
        assert house.disconnected() == set(), "who is let in by the old key is left alone"
    for name in ("host", "registry", "discovery", "groups", "router", "user"):
        rotate(_QUIET, name, out=folder, pid_file=pid_file, at_once=True)
    render(_QUIET, out=folder, pid_file=pid_file)
    await eventually(house.reconnected, lambda names: len(names) == len(house.programs), within=_SOON)
    with pytest.raises(UnavailableError, match="rejects the credentials"):
        async with open_connection(old, patience=_BRIEFLY):
            pass
    (house.folder / "go-on").touch()
    assert [(one.reason, one.content) for one in await house.ends(goals)] == [(Reason.CONCLUDED, "The train is there.")] * 2
    assert [line for line in house.secured.log().splitlines() if "Permissions Violation" in line] == []


async def test_revoked_key_is_disconnected_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The server closes the open connection and rejects a new one; other keys of the pool stay connected."""
    async with open_secured(tmp_path, ("writer:2",)) as secured, AsyncExitStack() as stack:
        revoked, other = (secured.settings("writer", f"writer-{number}") for number in range(2))
        revoked = replace(revoked, seed=read_key(str(revoked.seed)).seed)
        client = await stack.enter_async_context(open_connection(revoked, patience=_SOON))
        colleague = await stack.enter_async_context(open_connection(other, patience=_SOON))
        await asyncio.to_thread(_revoke, secured, "writer-0")
        await eventually(lambda: client.is_connected, lambda connected: not connected, within=timedelta(seconds=5))
        with pytest.raises(UnavailableError, match="rejects the credentials"):
            async with open_connection(revoked, patience=_BRIEFLY):
                pass
        assert (colleague.is_connected, colleague.stats["reconnects"]) == (True, 0)


async def test_client_of_revoked_user_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A program that waits for a goal reports that its key is rejected; commands use the same connection."""
    monkeypatch.setattr(client_module, "REJECTED_TIMEOUT", timedelta(seconds=1))
    async with open_secured(tmp_path, ()) as secured:
        monkeypatch.setenv("IOA_NATS_URL", secured.server.url)
        monkeypatch.setenv("IOA_NATS_SEED", str(secured.folder / "eve" / "seed"))
        with pytest.raises(NotLetInError, match="rejects this credential"):
            async with asyncio.timeout(30), connect() as client:
                await asyncio.to_thread(_revoke, secured, "eve")
                await client.wait_for_result(GoalId("none"))


@pytest.mark.slow
async def test_admin_ends_goals_and_http_keys_of_a_user(house: House) -> None:
    """Open goals are cancelled, goals that have not begun are removed, and those of other users continue."""
    async with open_system(house.secured.settings("admin"), patience=_SOON) as admin:
        for user in ("eve", "eve", "user"):
            await create(admin, _QUIET, name="page", scope="goals:read", user=user)
        for one in ("local", "groups", "observers"):
            with pytest.raises(InvalidInputError, match="for others"):
                await create(admin, _QUIET, name="page", scope="goals:write", user=one)
    [kept] = await house.begin("Wait for the train to London.")
    async with open_system(house.secured.settings("eve"), patience=_MINUTE) as eve:
        hers = [await eve.submit(GoalOrder(goal=f"Wait for bus {n}.", agent=AgentId("host"))) for n in range(_MORE_THAN_OPEN)]
    async with open_system(house.secured.settings("admin"), patience=_SOON) as admin:

        async def open_of(user: str) -> list[GoalId]:
            page = await admin.goals(limit=500, open_only=True)
            return [one.record.goal.goal_id for one in page.goals if one.record.goal.user == user]

        await eventually(lambda: open_of("eve"), lambda found: hers[0] in found, within=_SOON)
        await revoke_key(admin, _QUIET, user="eve")
        await cancel_user_goals(admin, UserId("eve"), "The key was stolen.", _QUIET)
        assert (await open_of("eve"), await open_of("user")) == ([], [kept])
        assert await admin.count_waiting(GoalName(UserId("eve"), hers[-1])) == 0
    async with open_connection(house.secured.settings("admin")) as client:
        assert [key.user for key in await NatsApiKeys(client).keys()] == ["user"]
    async with open_connection(house.secured.settings("auditor")) as auditor:

        async def cancelling() -> set[str]:
            page = await NatsAuditTrail(auditor).page(limit=500)
            return {line.who for _, line in page.lines if line.deed is Deed.CANCELLED}

        assert await eventually(cancelling, bool, within=_SOON) == {"admin"}
    async with open_system(house.secured.settings("eve"), patience=_SOON) as eve:
        for command in (cancel_user_goals(eve, UserId("user"), "", _QUIET), revoke_key(eve, _QUIET, user="user")):
            with pytest.raises(ForbiddenError):
                await command
    (house.folder / "go-on").touch()
    assert [one.reason for one in await house.ends([kept])] == [Reason.CONCLUDED]


def _revoke(secured: Secured, name: str) -> None:
    revoke(_QUIET, name, out=secured.folder, pid_file=secured.pid_file)


@pytest.mark.nightly
async def test_agent_is_revoked_during_a_task(house: House) -> None:
    """Its connection is closed; when an admin has removed its card, the goal fails with the reason, and the next one succeeds."""
    goals = await house.begin("Wait for the train to London.")
    [thief] = house.at_work()
    await asyncio.to_thread(_revoke, house.secured, thief)
    await eventually(house.disconnected, lambda names: names == {thief}, within=_SOON)
    async with open_system(house.secured.settings("admin"), patience=_SOON) as admin:
        await admin.remove_agent(RemoveAgent(agent_id=AgentId(thief), force=True))
    assert thief not in {status.card.agent_id for status in await house.user.agents()}
    (house.folder / "go-on").touch()
    [ended] = await house.ends(goals)
    assert ended.reason is Reason.FAILED and f"{thief} reported nothing" in ended.content
    again = await house.ends([await house.user.submit(GoalOrder(goal="Wait for the train to Rome.", agent=AgentId("host")))])
    assert [one.reason for one in again] == [Reason.CONCLUDED]
