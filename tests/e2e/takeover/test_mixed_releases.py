"""Releases beside each other, in the middle of an upgrade: goals with teams wait for who knows their policies, and none is lost."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from nats.aio.client import Client as NatsConnection

from ioa.adapters.nats.log import NatsGroupLog
from ioa.adapters.nats.server import NatsServer
from ioa.adapters.nats.system_client import NatsSystemClient
from ioa.client.client import Client
from ioa.errors import ConflictError, UnavailableError
from ioa.group.events import LaunchAbandoned
from ioa.protocol.goals import Origin, Reason
from ioa.protocol.ids import LOCAL, GoalId, GoalName
from ioa.testing.log_checker import check
from ioa_testkit.load_worker import environment_of
from ioa_testkit.oracle import answer_to
from tests.e2e.chaos.conftest import QUICK
from tests.rig.deadline import eventually
from tests.rig.evidence import without_result
from tests.rig.fleet import ROSTER, WORKERS, agents_of, open_fleet
from tests.rig.older_releases import unpack_release

pytestmark = [pytest.mark.slow, pytest.mark.timeout(120), pytest.mark.blocks_loop]  # it waits for forks on a busy machine

_BEFORE_POLICIES = "c14225c"
_OLD, _NEW = WORKERS
_WITHIN = timedelta(seconds=40)


class Older:
    """Processes of an older release."""

    def __init__(self, code: Path, log: Path, env: Mapping[str, str]) -> None:
        self._code = code
        self._log = log
        self._env = {**os.environ, **env, "PYTHONPATH": os.pathsep.join(str(code / part) for part in ("libs", "services"))}

    @asynccontextmanager
    async def running(self, module: str, env: Mapping[str, str] | None = None) -> AsyncIterator[None]:
        """Run a module for as long as the block."""
        with self._log.open("ab") as log:
            command = (sys.executable, "-W", "ignore", "-m", module)
            process = await asyncio.create_subprocess_exec(*command, env={**self._env, **(env or {})}, stdout=log, stderr=log)
        try:
            yield
        finally:
            process.kill()
            await process.wait()

    def log(self) -> str:
        """What its processes have written."""
        return self._log.read_text()


async def test_a_goal_with_a_team_waits_for_those_who_know_policies(nats_server: NatsServer, tmp_path: Path) -> None:
    """The user of a team that an older pool leads is told so.

    An older leader at an older group setup opens no free group in its place, and neither ends the goal; beside an older router the
    group comes to its result once the others are upgraded.
    """
    code = await asyncio.to_thread(unpack_release, _BEFORE_POLICIES, tmp_path)
    folder = tmp_path / "fleet"
    old_worker = environment_of(agents_of(_OLD), agents_of(_OLD), folder / "agents", folder / f"{_OLD}.jsonl")
    older = Older(code, tmp_path / "older.log", {**QUICK, "IOA_NATS_URL": nats_server.url, "IOA_LOG_LEVEL": "info"})
    told, waits = GoalId("told"), GoalId("waits")
    async with open_fleet(nats_server.url, folder, QUICK) as fleet, older.running("ioa_router"):
        await fleet.start("registry-0", "groups-0", "router-0")
        async with older.running("ioa_testkit.load_worker", old_worker):
            await fleet.until_online(*agents_of(_OLD))
            await fleet.publish(told, "led")
            await fleet.rest()
            await fleet.start(_NEW)
            await fleet.until_online()
            await fleet.stop(_NEW)
            await fleet.publish(waits, "led")
            await eventually(older.log, lambda log: "leads no goal with a team" in log, within=_WITHIN)
            await fleet.stop("groups-0")
            async with older.running("ioa_groups"):
                await eventually(older.log, lambda log: "it shows no ticket of it" in log, within=_WITHIN)
        opened = await NatsGroupLog(fleet.client).last(GoalName(LOCAL, waits).comm_id)
        await fleet.start("groups-0", *WORKERS)
        evidence = await fleet.evidence()
    results = {result.goal_id: result for result in evidence.results}
    assert (results[told].reason, "upgrade it" in results[told].content, opened) == (Reason.NO_AGENT, True, None)
    assert (results[waits].reason, results[waits].content) == (Reason.CONCLUDED, answer_to(f"load led {waits}"))
    assert check(replace(evidence, absences=None)) == []  # whoever knows no policies is as good as away


@pytest.mark.parametrize(
    ("version", "newer"),
    [("02809590", "reviewed"), ("ce2d69bb", "forked")],
    ids=["before reviews", "before forks"],
)
async def test_routers_and_agents_of_two_releases_work_side_by_side(
    nats_server: NatsServer, tmp_path: Path, version: str, newer: str
) -> None:
    """Beside an older router and older agents goals come to their answers, those with a newer policy by the newer ones.

    An older agent that is offered such a goal leaves it to others. An older router takes part in what it knows, also alone, and
    leaves alone what it does not, until a newer one is back.
    """
    code = await asyncio.to_thread(unpack_release, version, tmp_path)
    folder = tmp_path / "fleet"
    old_worker = environment_of(agents_of(_OLD), ROSTER, folder / "agents", folder / f"{_OLD}.jsonl")
    older = Older(code, tmp_path / "older.log", {**QUICK, "IOA_NATS_URL": nats_server.url, "IOA_LOG_LEVEL": "info"})
    kinds, newest = ("led", "talk", "mixed"), [GoalId(f"{newer}-{number}") for number in range(3)]
    async with open_fleet(nats_server.url, folder, QUICK) as fleet, older.running("ioa_router"):
        await fleet.start("registry-0", "groups-0", "router-0")
        async with older.running("ioa_testkit.load_worker", old_worker):
            await fleet.start(_NEW)
            await fleet.until_online()
            await fleet.stop(_NEW)
            await fleet.publish(newest[0], newer)
            await eventually(older.log, lambda log: '"subject": "ioa.v1.work.' in log, within=_WITHIN)
        for goal_id in newest[1:]:
            await fleet.publish(goal_id, newer)
        await fleet.start(_NEW)
        await eventually(lambda: _all_open(fleet.client, newest), within=_WITHIN)  # older agents would draw them again and again
        await fleet.kill("router-0")
        async with older.running("ioa_testkit.load_worker", old_worker):
            await fleet.until_online()
            await fleet.publish(GoalId("alone"), "led")  # the older router leads it by itself
            await eventually(lambda: without_result(fleet.client, [GoalId("alone")]), lambda left: not left, within=_WITHIN)
            await fleet.start("router-0")
            for number in range(3):
                for kind in kinds:
                    await fleet.publish(GoalId(f"{kind}-{number}"), kind)
            evidence = await fleet.evidence()
    results = {result.goal_id: (result.reason, result.content) for result in evidence.results}
    answers = {f"{kind}-{number}": answer_to(f"load {kind} {kind}-{number}") for kind in (*kinds, newer) for number in range(3)}
    answers["alone"] = answer_to("load led alone")
    assert results == {GoalId(goal_id): (Reason.CONCLUDED, answer) for goal_id, answer in answers.items()}
    assert check(evidence) == []


async def test_a_fork_is_left_to_routers_that_know_what_a_copy_is(nats_server: NatsServer, tmp_path: Path) -> None:
    """An older router alone leaves the group as it was copied; a newer one brings it to a result that says where it comes from."""
    code = await asyncio.to_thread(unpack_release, "ce2d69bb", tmp_path)
    older = Older(code, tmp_path / "older.log", {**QUICK, "IOA_NATS_URL": nats_server.url, "IOA_LOG_LEVEL": "info"})
    base, fork = GoalId("base"), GoalId("fork")
    async with open_fleet(nats_server.url, tmp_path / "fleet", QUICK) as fleet, older.running("ioa_router"):
        await fleet.start("registry-0", "groups-0", "router-0", *WORKERS)
        await fleet.until_online()
        await fleet.publish(base, "talk")
        before = await fleet.evidence()
        await fleet.stop("router-0")
        at = before.logs[GoalName(LOCAL, base).comm_id][0].seq
        await Client(NatsSystemClient(fleet.client)).fork(base, at=at, goal_id=fork)
        fleet.goals.append(fork)
        await eventually(older.log, lambda log: "This is of version 7" in log, within=_WITHIN)
        log, room = NatsGroupLog(fleet.client), GoalName(LOCAL, fork).comm_id
        head = await eventually(lambda: log.last(room), lambda last: last is not None and not last.entry.state.copying)
        await fleet.start("router-0")
        after = await fleet.evidence()
    copy = after.logs[GoalName(LOCAL, fork).comm_id]
    assert head is not None and head.entry == copy[1].entry
    assert {one.entry.state.forked_from for one in copy} == {Origin(goal_id=base, at=at)}
    [result] = [one for one in after.results if one.goal_id == fork]
    assert (result.reason, result.forked_from) == (Reason.CONCLUDED, Origin(goal_id=base, at=at))


async def _all_open(client: NatsConnection, goals: Sequence[GoalId]) -> bool:
    log = NatsGroupLog(client)
    return all([await log.last(GoalName(LOCAL, goal_id).comm_id) is not None for goal_id in goals])


async def test_who_forks_beside_an_older_group_setup_is_told_so(nats_server: NatsServer, tmp_path: Path) -> None:
    """A group setup that knows no forks begins no goal anew in the fork's place: who forks is told what it could not read."""
    code = await asyncio.to_thread(unpack_release, "ce2d69bb", tmp_path)
    older = Older(code, tmp_path / "older.log", {**QUICK, "IOA_NATS_URL": nats_server.url, "IOA_LOG_LEVEL": "info"})
    base, fork = GoalId("base"), GoalId("fork")
    async with open_fleet(nats_server.url, tmp_path / "fleet", QUICK) as fleet:
        await fleet.start("registry-0", "groups-0", "router-0", *WORKERS)
        await fleet.until_online()
        await fleet.publish(base, "talk")
        before = await fleet.evidence()
        await fleet.stop("groups-0")
        at = before.logs[GoalName(LOCAL, base).comm_id][0].seq
        client = Client(NatsSystemClient(fleet.client))
        async with older.running("ioa_groups"):
            await eventually(lambda: _is_served(client, base), within=_WITHIN)
            with pytest.raises(ConflictError, match="forked_from"):
                await client.fork(base, at=at, goal_id=fork)
        last = await NatsGroupLog(fleet.client).last(GoalName(LOCAL, fork).comm_id)
    assert last is not None and isinstance(last.entry.event, LaunchAbandoned)


async def _is_served(client: Client, goal_id: GoalId) -> bool:
    try:
        return bool(await client.system.group(GoalName(LOCAL, goal_id).comm_id))
    except UnavailableError:
        return False
