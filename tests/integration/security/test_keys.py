"""Keys are replaced and revoked while goals run: nobody is restarted, and no goal is lost."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from ioa.adapters.nats.api_keys import NatsApiKeys
from ioa.adapters.nats.audit import NatsAuditTrail
from ioa.adapters.nats.connection import open_connection
from ioa.adapters.nats.system_client import NatsSystemClient, open_system
from ioa.adapters.nats.topology import GOALS_OPEN
from ioa.adapters.nkey_seeds import read_key
from ioa.cli import key_rotation, reach
from ioa.cli.key_rotation import KeyFolder, expire, revoke, rotate
from ioa.cli.keys import create_key
from ioa.cli.terminal import Terminal
from ioa.errors import InvalidInputError, NotFoundError, UnavailableError
from ioa.ports.goal_client import GoalFilter
from ioa.protocol.audit import Deed
from ioa.protocol.goal_order import GoalOrder
from ioa.protocol.goals import GoalResult, Reason
from ioa.protocol.ids import AgentId, GoalId, GoalName, UserId
from tests.integration.security.secured import SERVICES, Secured, open_secured
from tests.rig.deadline import eventually

_AT_ONCE, _HOUR = timedelta(0), timedelta(hours=1)
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
    user: NatsSystemClient
    folder: Path
    programs: Sequence[str]

    @property
    def keys(self) -> KeyFolder:
        """Where keys are; the server reloads when it is told by the pid file."""
        return KeyFolder(self.secured.folder, self.secured.pid_file)

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
        launched = [await self.user.launch(GoalOrder(goal=goal, agent=AgentId("host"))) for goal in goals]
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
    """Agents and services go on under their new keys, with tasks and goals; the old ones are let in for the grace and no longer."""
    goals = await house.begin("Wait for the train to London.", "Wait for the train to Paris.")
    now, old = datetime.now(UTC), house.secured.settings("waiter", "waiter-0")
    old = replace(old, seed=read_key(str(old.seed)).seed)
    rotate(house.keys, "waiter", _HOUR, now, _QUIET)
    async with open_connection(old, patience=_SOON):
        assert house.disconnected() == set(), "who is let in by the old key is left alone"
    for name in ("host", "registry", "discovery", "groups", "router", "user"):
        rotate(house.keys, name, _AT_ONCE, now, _QUIET)
    expire(house.keys, now + _HOUR, _QUIET)
    await eventually(house.reconnected, lambda names: len(names) == len(house.programs), within=_SOON)
    with pytest.raises(UnavailableError, match="rejects the credentials"):
        async with open_connection(old, patience=_BRIEFLY):
            pass
    (house.folder / "go-on").touch()
    assert [(one.reason, one.content) for one in await house.ends(goals)] == [(Reason.CONCLUDED, "The train is there.")] * 2
    assert [line for line in house.secured.log().splitlines() if "Permissions Violation" in line] == []


async def test_who_is_thrown_out_comes_in_by_http_no_more(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    """His keys of HTTP go with his own, and nobody else's: the gateway knows him by them alone."""
    _as_admin(house, monkeypatch)
    for user in ("user", "user", "anna"):
        await create_key(None, "page", ["goals:read"], user, None, [], _QUIET)
    for one in ("local", "groups", "observers"):  # by which goals of all others would be ended, or what services ask asked
        with pytest.raises(InvalidInputError, match="for others"):
            await create_key(None, "page", ["goals:write"], one, None, [], _QUIET)
    await revoke(house.keys, "user", None, datetime.now(UTC), _QUIET)
    async with open_connection(house.secured.settings("admin")) as admin:
        assert [key.user for key in await NatsApiKeys(admin).keys()] == ["anna"]


@pytest.mark.slow
async def test_goals_of_who_is_thrown_out_end(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    """What he launched is cancelled, what waits for others of his goals to end is not begun, and other people's goals go on."""
    _as_admin(house, monkeypatch)
    [kept] = await house.begin("Wait for the train to London.")
    async with open_system(house.secured.settings("eve"), patience=_MINUTE) as eve:
        hers = [await eve.launch(GoalOrder(goal=f"Wait for bus {n}.", agent=AgentId("host"))) for n in range(_MORE_THAN_OPEN)]
    async with open_system(house.secured.settings("admin"), patience=_SOON) as admin:

        async def open_of(user: str) -> list[GoalId]:
            page = await admin.goals(limit=500, only=GoalFilter(open_only=True))
            return [one.record.goal.goal_id for one in page.goals if one.record.goal.user == user]

        await eventually(lambda: open_of("eve"), lambda found: hers[0] in found, within=_SOON)
        with pytest.raises(NotFoundError) as raised:
            await admin.find_goal(f"eve/{hers[-1]}")
        assert "goals of eve wait until others of theirs have ended" in raised.value.hint
        await revoke(house.keys, "eve", None, datetime.now(UTC), _QUIET)
        assert (await open_of("eve"), await open_of("user")) == ([], [kept])
        assert await admin.waiting(GoalName(UserId("eve"), hers[-1])) == 0
    async with open_connection(house.secured.settings("auditor")) as auditor:

        async def who_cancelled() -> set[str]:
            page = await NatsAuditTrail(auditor).page(limit=500)
            return {line.who for _, line in page.lines if line.deed is Deed.CANCELLED}

        assert await eventually(who_cancelled, bool, within=_SOON) == {"_admin"}, "it is no deed of hers"
    async with open_system(house.secured.settings("user"), patience=_SOON) as anybody:
        assert "thrown out" in (await anybody.wait_for_result(GoalName(UserId("eve"), hers[0]))).content
    (house.folder / "go-on").touch()
    assert [one.reason for one in await house.ends([kept])] == [Reason.CONCLUDED]


def _as_admin(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    """Give commands as an admin does; no gateway runs here, which has to read that a key is gone."""
    monkeypatch.setattr(key_rotation, "GATEWAYS_LOOK_WITHIN", _BRIEFLY)
    monkeypatch.setattr(reach, "configure_logs", lambda *_: None)
    monkeypatch.setenv("IOA_NATS_URL", house.secured.server.url)
    monkeypatch.setenv("IOA_NATS_SEED", str(house.secured.folder / "admin" / "seed"))


@pytest.mark.slow
async def test_an_agent_is_thrown_out_in_the_middle_of_a_task(
    house: House, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its connection is closed, its card is gone, its key opens nothing; the goal ends with the reason, and the next is reached."""
    goals = await house.begin("Wait for the train to London.")
    [thief] = house.at_work()
    _as_admin(house, monkeypatch)
    stolen = house.secured.settings("waiter", thief)
    stolen = replace(stolen, seed=read_key(str(stolen.seed)).seed)
    await revoke(house.keys, thief, None, datetime.now(UTC), Terminal(as_json=False))
    assert f"the agent {thief} is forgotten" in capsys.readouterr().err
    await eventually(house.disconnected, lambda names: names == {thief}, within=_SOON)
    with pytest.raises(UnavailableError, match="rejects the credentials"):
        async with open_connection(stolen, patience=_BRIEFLY):
            pass
    assert thief not in {status.card.agent_id for status in await house.user.agents()}
    (house.folder / "go-on").touch()
    [ended] = await house.ends(goals)
    assert ended.reason is Reason.FAILED and f"{thief} reported nothing" in ended.content
    again = await house.ends([await house.user.launch(GoalOrder(goal="Wait for the train to Rome.", agent=AgentId("host")))])
    assert [one.reason for one in again] == [Reason.CONCLUDED]
    async with open_connection(house.secured.settings("auditor")) as auditor:
        expected = {
            ("joined", thief, "waiter"),
            ("accepted", "user", goals[0]),
            ("launched", "host", goals[0]),
            ("removed", "_admin", thief),
            ("ended", "user", goals[0]),
        }

        async def noted() -> set[tuple[str, str, str]]:
            page = await NatsAuditTrail(auditor).page(limit=100)
            return {(line.deed, line.who, line.target) for _, line in page.lines}

        await eventually(noted, expected.issubset, within=_SOON)
