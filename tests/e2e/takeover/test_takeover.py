"""A system that an older version left behind, in the middle of its work, is taken over by this one."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from ioa.adapters.nats.server import open_nats_server
from ioa.adapters.nats.system_client import NatsSystemClient
from ioa.cli.credentials import create_credentials, plan_of, upgrade_credentials
from ioa.cli.terminal import Terminal
from ioa.group.events import Said
from ioa.ports.dead_letter_box import DeadLetter
from ioa.ports.group_log import StoredEntry
from ioa.protocol import subjects
from ioa.protocol.goal_order import GoalOrder
from ioa.protocol.goals import GoalResult, Reason
from ioa.protocol.ids import GoalId, GoalName
from ioa.protocol.messages import ConcludeGroupDiscussion
from ioa.testing.log_checker import check
from ioa.testing.manual_clock import NEW_YEAR
from tests.rig.deadline import eventually
from tests.rig.fleet import CONTROL_PLANE, WORKERS, open_fleet
from tests.rig.older_releases import OLDER_RELEASES, unpack_release

pytestmark = [pytest.mark.slow, pytest.mark.timeout(180), pytest.mark.blocks_loop]  # it waits for forks on a busy machine

_WRITER = OLDER_RELEASES / "write_folder.py"
_NAMED = ("--pool=calculator:2", "--user=anna", "--observer=grafana", "--admin=root")
_AGENT = """
from ioa.agent.sdk import Agent

agent = Agent("calculator", name="Calculator", description="Works out arithmetic.")


@agent.task
async def run(task: str) -> str:
    return task
"""


@dataclass(frozen=True)
class Left:
    """What the older version left: its code, its folder, when, the results it had, the goals that were open, and all goals."""

    code: Path
    folder: Path
    at: datetime
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
    code = unpack_release(version, folder)
    _install_as_ioa(code / "libs")
    written = _run(code, str(_WRITER), str(folder / "data"))
    assert written.returncode == 0, written.stderr
    left = json.loads((folder / "data" / "left.json").read_text())
    return Left(
        code,
        folder / "data",
        datetime.fromisoformat(left["at"]),
        tuple(GoalResult.model_validate(result) for result in left["ended"]),
        tuple(GoalId(goal_id) for goal_id in left["open"]),
        tuple(GoalId(goal_id) for goal_id in left["all"]),
        frozenset(left["phases"]),
    )


def _run(code: Path, *arguments: str, **env: str) -> subprocess.CompletedProcess[str]:
    """Run Python on an older version's own code."""
    env |= {"PYTHONPATH": os.pathsep.join(str(code / part) for part in ("libs", "services"))}
    command = [sys.executable, "-W", "ignore", *arguments]
    return subprocess.run(command, env={**os.environ, **env}, capture_output=True, text=True, timeout=120)


@pytest.fixture(params=["c7cd6ef"])
async def left(request: pytest.FixtureRequest, tmp_path: Path) -> Left:
    """What a version left behind, by its name."""
    return await asyncio.to_thread(_write, str(request.param), tmp_path)


async def test_what_an_older_version_left_behind_is_taken_over(left: Left) -> None:
    """Results stay, open goals go on where they were, each task's result counts once, and what was queued is taken.

    Goals without tickets or users are led all the same, under their old ids, which are those of the user `local`. A client that
    is still of the older version is told by a result and a dead letter; an agent is told to be upgraded, once, and ends. A policy
    leads a new group beside those of before. The keys of before let in the same people, with what they may do now.
    """
    env = {"IOA_LOG_LEVEL": "error"}
    async with (
        open_nats_server(left.folder / "nats", None) as server,
        open_fleet(server.url, left.folder / "fleet", env) as fleet,
    ):
        fleet.take_over(left.at)
        await fleet.start(*CONTROL_PLANE, *WORKERS)
        fleet.goals += left.goals
        await fleet.until_online()
        await fleet.publish(GoalId("led"), "led")
        evidence = await fleet.evidence(within=timedelta(seconds=90))
        system = NatsSystemClient(fleet.client)
        shown = [await system.goal(goal_id) for goal_id in left.goals]
        late = GoalName(None, GoalId("late"))
        await fleet.client.publish(subjects.OLD_GOAL, json.dumps({"goal": "Count.", "goal_id": late.goal_id}).encode())
        refused = await system.wait_for_result(late)
        letters = (await system.dead_letters.page(limit=1)).letters
        again = await system.launch(GoalOrder(goal="Greet nobody.", goal_id=left.goals[0]))

        async def newest() -> DeadLetter:
            return (await system.dead_letters.page(limit=1)).letters[0]

        conflict = await eventually(newest, lambda letter: letter.reason == "conflict", within=timedelta(seconds=30))
        logs = fleet.logs()
        agent = left.folder / "agent.py"
        agent.write_text(_AGENT)
        command = ("-m", "ioa.cli", "agent", "run", f"{agent}:agent")
        told = await asyncio.to_thread(
            _run, left.code, *command, IOA_NATS_URL=server.url, IOA_AGENT_DATA=str(left.folder / "agents")
        )
    made, upgraded = left.folder / "made", left.folder / "upgraded"
    rendered = await asyncio.to_thread(_run, left.code, "-m", "ioa.cli", "credentials", "create", f"--out={made}", *_NAMED)
    await asyncio.to_thread(shutil.copytree, made, upgraded)
    upgrade_credentials(upgraded, Terminal(as_json=True))
    create_credentials(made, plan_of(["calculator:2"], ["anna"], ["grafana"], ["root"]), Terminal(as_json=True), now=NEW_YEAR)

    assert {"discussing", "assigned", "paused"} <= left.phases
    assert (len(left.ended), len(left.still_open) > 5) == (5, True)
    assert check(evidence) == []
    kept = {result.goal_id: result for result in evidence.results}
    assert [kept[result.goal_id] for result in left.ended] == list(left.ended)
    results = [status.result for status in shown if status.result]
    ending = {result.goal_id for result in results if _was_ending(evidence.logs.get(result.comm_id, ()), left.at)}
    short = {result.goal_id: result.reason for result in results if result.reason is not Reason.CONCLUDED}
    assert len(results) == len(left.goals)
    assert (short.keys() <= ending, set(short.values()) <= {Reason.FAILED}) == (True, True), (short, logs)
    assert kept[GoalId("led")].reason is Reason.CONCLUDED
    assert {(status.record.ticket_digest, status.record.goal.user) for status in shown} == {(None, None)}
    assert (refused.reason, "names no user" in refused.content, [letter.subject for letter in letters]) == (
        Reason.FAILED,
        True,
        [subjects.OLD_GOAL],
    )
    assert f"The goal id {again} is taken by another goal" in conflict.why
    assert (told.returncode, told.stderr.count("too old for this system"), "asking_again" in told.stderr) == (2, 1, False), told
    assert rendered.returncode == 0, rendered.stderr
    authorizations = [(folder / "nats" / "authorization.conf").read_text() for folder in (made, upgraded)]
    assert authorizations[0] == authorizations[1]


def _was_ending(log: Sequence[StoredEntry], at: datetime) -> bool:
    """Whether an agent of the older version had ended the discussion: its puzzles ask for less than today's conclusions do."""
    said = [one.entry.event.message for one in log if isinstance(one.entry.event, Said)]
    return any(isinstance(message.payload, ConcludeGroupDiscussion) and message.header.sent_at <= at for message in said)
