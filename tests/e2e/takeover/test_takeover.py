"""A system that an older version left behind, in the middle of its work, is taken over by this one."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import tarfile
from collections import Counter
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import pytest

from ioa.adapters.nats.server import open_nats_server
from ioa.adapters.nats.system_client import NatsSystemClient
from ioa.protocol.goals import GoalResult, Reason
from ioa.protocol.ids import GoalId
from ioa.testing.log_checker import check
from tests.rig.fleet import CONTROL_PLANE, WORKERS, open_fleet

pytestmark = [pytest.mark.slow, pytest.mark.timeout(180), pytest.mark.blocks_loop]  # it waits for forks on a busy machine

_DATA = Path(__file__).parents[2] / "data" / "takeover"
_WRITER = _DATA / "write_folder.py"


@dataclass(frozen=True)
class Left:
    """What the older version left: its folder, the results it had, the goals that were open, and all goals."""

    folder: Path
    ended: tuple[GoalResult, ...]
    still_open: tuple[GoalId, ...]
    goals: tuple[GoalId, ...]
    phases: frozenset[str]


def _install_as_ioa(path: Path) -> None:
    """Let a version find itself that asks for the distribution `ioa`, as all of them did that had this name."""
    information = path / "ioa-0.1.0.dist-info"
    information.mkdir()
    (information / "METADATA").write_text("Metadata-Version: 2.1\nName: ioa\nVersion: 0.1.0\n")


def _write(version: str, folder: Path) -> Left:
    """Run the older version's own code, which writes the folder and ends in the middle of its work."""
    with tarfile.open(_DATA / f"ioa-{version}.tar.xz") as archive:
        archive.extractall(folder / "code", filter="data")
    _install_as_ioa(folder / "code" / "libs")
    path = os.pathsep.join(str(folder / "code" / part) for part in ("libs", "services"))
    command = [sys.executable, "-W", "ignore", str(_WRITER), str(folder / "data")]
    written = subprocess.run(command, env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True, timeout=120)
    assert written.returncode == 0, written.stderr
    left = json.loads((folder / "data" / "left.json").read_text())
    return Left(
        folder / "data",
        tuple(GoalResult.model_validate(result) for result in left["ended"]),
        tuple(GoalId(goal_id) for goal_id in left["open"]),
        tuple(GoalId(goal_id) for goal_id in left["all"]),
        frozenset(left["phases"]),
    )


@pytest.fixture(params=["c7cd6ef"])
async def left(request: pytest.FixtureRequest, tmp_path: Path) -> Left:
    """What a version left behind, by its name."""
    return await asyncio.to_thread(_write, str(request.param), tmp_path)


async def test_what_an_older_version_left_behind_is_taken_over(left: Left) -> None:
    """Results stay, open goals go on where they were, each task's result counts once, and what was queued is taken."""
    env = {"IOA_LOG_LEVEL": "error"}
    async with (
        open_nats_server(left.folder / "nats", None) as server,
        open_fleet(server.url, left.folder / "fleet", env) as fleet,
    ):
        await fleet.start(*CONTROL_PLANE, *WORKERS)
        fleet.goals += left.goals
        evidence = await fleet.evidence(within=timedelta(seconds=90))
        system = NatsSystemClient(fleet.client)
        shown = [await system.goal(goal_id) for goal_id in left.goals]
        logs = fleet.logs()

    assert {"discussing", "assigned", "paused"} <= left.phases
    assert (len(left.ended), len(left.still_open) > 5) == (5, True)
    assert check(evidence) == []
    kept = {result.goal_id: result for result in evidence.results}
    assert [kept[result.goal_id] for result in left.ended] == list(left.ended)
    assert Counter(status.result.reason for status in shown if status.result) == {Reason.CONCLUDED: len(left.goals)}, logs
