"""The whole system runs with the permissions that are rendered for it, and needs no more."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

from ioa.client.client import Client, open_system
from ioa.client.history import conversation
from ioa.protocol.goal_order import GoalOrder
from ioa.protocol.goals import Reason
from ioa.protocol.ids import AgentId, GoalName, comm_id_of_goal
from ioa.protocol.operation.status import Prune
from ioa.protocol.registry import RemoveAgent
from tests.integration.security.secured import EXAMPLES, open_running, open_secured

_GOAL = "1. sum of revenue by region\n2. bar chart of #1\n3. report of #1 and #2"
_NESTED = "briefing:\n- sum of units by month\n- line chart of #1"


async def test_goals_are_finished_by_roles(tmp_path: Path) -> None:
    """A goal with a file, a goal with a nested team and a replica's work end well, and the server refused nobody anything."""
    pools = ("csv-analyst", "chart-maker", "report-writer", "analyst-desk", "calculator:2")
    async with open_secured(tmp_path, pools) as secured:
        agents = {
            key: secured.agent(file, pool, key)
            for file, pool, key in (
                ("csv_analyst", "csv-analyst", "csv-analyst"),
                ("chart_maker", "chart-maker", "chart-maker"),
                ("report_writer", "report-writer", "report-writer"),
                ("analyst_desk", "analyst-desk", "analyst-desk"),
                ("calculator", "calculator", "calculator-0"),
                ("calculator", "calculator", "calculator-1"),
            )
        }
        sales = [EXAMPLES / "data" / "sales.csv"]
        async with open_running(secured, agents) as system:
            reasons = [
                await _run(system, GoalOrder(goal=_GOAL), sales),
                await _run(system, GoalOrder(goal=_NESTED, agent=AgentId("report-writer")), sales),
                await _run(system, GoalOrder(goal="15 / 100 * 240", agent=AgentId("calculator")), []),
            ]
            groups = len((await system.groups()).groups)
            async with open_system(secured.settings("admin"), patience=timedelta(seconds=10)) as operator:
                pruned = await operator.prune(Prune(older_than=timedelta(0)))
                await operator.remove_agent(RemoveAgent(agent_id=AgentId("calculator-1"), force=True))
        refused = [line for line in secured.log().splitlines() if "Violation" in line]
    assert (reasons, refused) == ([Reason.CONCLUDED] * 3, [])
    assert (pruned.goals, pruned.groups, pruned.failed) == ({"concluded": 3}, groups, 0)


async def _run(system: Client, order: GoalOrder, files: list[Path]) -> Reason:
    """Launch a goal and use everything that a user may see of it."""
    goal_id = await system.submit(order, files)
    result = await system.wait_for_result(goal_id)
    assert goal_id in {status.record.goal.goal_id for status in (await system.goals()).goals}
    assert comm_id_of_goal(goal_id, await system.user()) in {standing.state.comm_id for standing in (await system.groups()).groups}
    assert await system.find_goal(goal_id[:-1]) == GoalName(await system.user(), goal_id)
    entries = await conversation(system, comm_id_of_goal(goal_id, await system.user()))
    assert entries[-1].entry.state.phase.is_terminal
    assert await system.entries(goal_id, before=entries[-1].seq, limit=3) == entries[-4:-1]
    assert entries[-1].entry.state in (await system.state(goal_id)).values()
    for artifact in result.artifacts:
        assert len(await system.fetch(artifact)) == artifact.size_bytes
    return result.reason
