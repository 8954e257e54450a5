"""Agents' processes at their worst: functions that never return, and one file started twice."""

from __future__ import annotations

import asyncio
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
