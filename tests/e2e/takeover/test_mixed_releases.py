"""Releases beside each other, in the middle of an upgrade: a goal with a team waits for who knows its policy."""

from __future__ import annotations

import asyncio
import os
import sys
import tarfile
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from ioa.adapters.nats.log import NatsGroupLog
from ioa.adapters.nats.server import NatsServer
from ioa.protocol.goals import Reason
from ioa.protocol.ids import LOCAL, GoalId, GoalName
from ioa.testing.log_checker import check
from ioa_testkit.load_worker import environment_of
from ioa_testkit.oracle import answer_to
from tests.e2e.chaos.conftest import QUICK
from tests.rig.deadline import eventually
from tests.rig.fleet import WORKERS, agents_of, open_fleet

pytestmark = [pytest.mark.slow, pytest.mark.timeout(120), pytest.mark.blocks_loop]  # it waits for forks on a busy machine

_BEFORE_POLICIES = Path(__file__).parents[2] / "data" / "takeover" / "ioa-c14225c.tar.xz"
_OLD, _NEW = WORKERS
_WITHIN = timedelta(seconds=40)


class Older:
    """Processes of a release that knows tickets and users, and no policies."""

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
    with tarfile.open(_BEFORE_POLICIES) as archive:
        await asyncio.to_thread(archive.extractall, tmp_path / "code", filter="data")
    folder = tmp_path / "fleet"
    old_worker = environment_of(agents_of(_OLD), agents_of(_OLD), folder / "agents", folder / f"{_OLD}.jsonl")
    older = Older(tmp_path / "code", tmp_path / "older.log", {**QUICK, "IOA_NATS_URL": nats_server.url, "IOA_LOG_LEVEL": "info"})
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
