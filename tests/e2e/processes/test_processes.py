"""Agents' processes at their worst: functions that never return, and one file started twice."""

from __future__ import annotations

import asyncio
import signal
from datetime import timedelta

import pytest

from ioa.protocol.goal_order import GoalOrder
from ioa.protocol.goals import GoalResult, Reason
from ioa.protocol.ids import AgentId, GoalId
from tests.e2e.processes.conftest import Stage
from tests.rig.deadline import eventually

pytestmark = pytest.mark.slow

_PATIENCE = timedelta(seconds=60)


async def _launch(stage: Stage, agent: str, goal: str, timeout: float = 60) -> GoalId:
    return await stage.system.submit(GoalOrder(goal=goal, agent=AgentId(agent), timeout=timeout))


async def _result(stage: Stage, goal_id: GoalId) -> GoalResult:
    async with asyncio.timeout(_PATIENCE.total_seconds()):
        return await stage.system.wait_for_result(goal_id)


@pytest.mark.nightly
async def test_hanging_functions_delay_no_other_goal_and_no_shutdown(stage: Stage) -> None:
    """Four tasks hang: a quick goal ends before its deadline; after their cancellation one is reached; SIGTERM ends the process."""
    name = "hanger"
    async with stage.agent(name) as process:
        await stage.ready(name)
        hanging = [await _launch(stage, name, f"hang number {number}", timeout=600) for number in range(4)]
        await eventually(lambda: len(stage.runs()) == 4, within=_PATIENCE)

        crowded = await _result(stage, await _launch(stage, name, "be quick", timeout=25))
        for goal_id in hanging:
            await stage.system.cancel(goal_id, "It hangs.")
        free = await _result(stage, await _launch(stage, name, "be quick again", timeout=25))
        process.terminate()
        async with asyncio.timeout(_PATIENCE.total_seconds()):
            code = await process.wait()

    assert (crowded.reason is not Reason.DEADLINE, "slots of" in crowded.content) == (True, True), crowded
    assert (free.reason, free.content, code) == (Reason.CONCLUDED, "quick", 0), stage.log()
    assert ("never awaited" in stage.log(), "was destroyed" in stage.log()) == (False, False)


@pytest.mark.nightly
async def test_an_agent_started_twice_on_one_folder_shares_its_work(stage: Stage) -> None:
    """The second process is one more replica with a folder of its own; each task runs once, and both serve."""
    async with stage.agent("twin") as first:
        await stage.ready("twin")
        async with stage.agent("twin") as second:
            await stage.ready("twin-2")
            goals = [await _launch(stage, "twin", f"do something as a twin, {number}") for number in range(12)]
            reasons = {(await _result(stage, goal_id)).reason for goal_id in goals}
            tasks = [(task, words) for _, task, _, words in stage.runs()]
            pids = {int(pid) for pid, *_ in stage.runs()}
            first.send_signal(signal.SIGKILL)
            await first.wait()
            async with stage.agent("twin"):
                await stage.ready("twin", times=2)
                after = await _result(stage, await _launch(stage, "twin", "do something as a twin afterwards", timeout=30))

    assert (reasons, len(tasks), len(set(tasks)), pids) == ({Reason.CONCLUDED}, 12, 12, {first.pid, second.pid})
    assert (after.reason, stage.log().count("joins_as_replica")) == (Reason.CONCLUDED, 1), stage.log()
