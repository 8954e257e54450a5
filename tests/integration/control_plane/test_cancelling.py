"""Cancelling goals that are stored, and that intake may not have read yet."""

from __future__ import annotations

from pathlib import Path

from ioa import Agent
from ioa.beside import together
from ioa.group.requests import CancelGroup
from ioa.protocol.goal_order import GoalOrder
from ioa.protocol.goals import Reason
from ioa.protocol.ids import GoalId
from ioa_testkit.system import System


async def test_goal_is_cancelled_before_intake_reads_it(tmp_path: Path) -> None:
    """Of many goals that are published at once, the last ones are cancelled at once: each ends as cancelled, without work."""
    agent, worked = Agent("worker", description="Works."), list[str]()

    @agent.task
    def run(task: str) -> str:
        worked.append(task)
        return "done"

    async with System(tmp_path).serve(agent) as running:
        await together(*(running.client.launch(GoalOrder(goal=f"Work {number}.")) for number in range(300)))
        last = [GoalId(f"last-{number}") for number in range(5)]
        for goal_id in last:
            await running.client.launch(GoalOrder(goal=f"Work on {goal_id}.", goal_id=goal_id))
        for goal_id in last:
            await running.client.cancel(CancelGroup(goal_id=goal_id, why="Not needed."))
        results = [await running.client.wait_for_result(goal_id) for goal_id in last]

    assert [result.reason for result in results] == [Reason.CANCELLED] * len(last)
    assert [task for task in worked if "last" in task] == []
