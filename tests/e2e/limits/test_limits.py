"""Limits and cancellation with real processes: functions of tasks are stopped. `tests/data/rules` has each limit."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest

from ioa.client.client import Client
from ioa.protocol.goal_order import GoalOrder
from ioa.protocol.goals import GoalResult, Reason
from ioa.protocol.ids import AgentId, CommId, GoalId
from ioa.protocol.messages import Phase
from tests.e2e.command_line import is_alive
from tests.e2e.goals.outcomes import replay_tree
from tests.e2e.limits.conftest import Drill
from tests.rig.deadline import eventually


async def _phase(system: Client, comm_id: CommId) -> Phase:
    return (await system.group(comm_id)).state.phase


pytestmark = pytest.mark.slow

_PATIENCE = timedelta(seconds=30)


async def _run(system: Client, goal: str) -> GoalResult:
    """Let the boss lead a goal; return the result."""
    goal_id = await _launch(system, goal)
    async with asyncio.timeout(_PATIENCE.total_seconds()):
        return await system.wait_for_result(goal_id)


async def _launch(system: Client, goal: str, **options: object) -> GoalId:
    return await system.submit(GoalOrder.model_validate({"goal": goal, "agent": AgentId("boss"), "timeout": 60, **options}))


async def test_a_task_past_its_own_deadline_is_stopped(system: Client, drill: Drill) -> None:
    """It reports progress all the while and fails all the same; its function is told to stop, and its late result is lost."""
    stopped = len(drill.record("crawler.stopped"))
    result = await _run(system, "task_deadline: crawl")
    await eventually(lambda: len(drill.record("crawler.stopped")) == stopped + 1)
    assert (result.reason, result.content) == (Reason.CONCLUDED, "failed: crawler was not done by the task's deadline")


async def test_cancelled_goal_stops_functions_in_nested_teams(system: Client, drill: Drill) -> None:
    """The functions and the tool end, and all three groups are cancelled."""
    for name in ("walker", "crawler", "runner"):
        for moment in ("started", "stopped"):
            (drill.folder / f"{name}.{moment}").unlink(missing_ok=True)
    goal_id = await _launch(system, "nested: go deep", max_turns=40)
    started = ("walker.started", "crawler.started", "runner.started")
    await eventually(lambda: all(drill.record(name) for name in started), within=_PATIENCE)
    pid = int(drill.record("runner.started")[0])
    ran = is_alive(pid)

    cancelled = await asyncio.to_thread(drill.command.run, "goal", "cancel", goal_id, "--why", "Enough.", "--url", drill.url)

    await eventually(lambda: bool(drill.record("walker.stopped") and drill.record("crawler.stopped")), within=_PATIENCE)
    await eventually(lambda: not is_alive(pid), within=_PATIENCE)
    result = await system.result(goal_id)
    assert result is not None
    groups = await replay_tree(system, result.comm_id)
    phases = [await _phase(system, comm_id) for comm_id in groups]
    assert (cancelled.returncode, ran, result.reason, phases) == (0, True, Reason.CANCELLED, [Phase.CANCELLED] * 3)
    assert [len(drill.record(name)) for name in started] == [1, 1, 1]
