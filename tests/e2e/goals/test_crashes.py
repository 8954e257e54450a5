"""An agent's process is killed at every step of its work and started again on its own memory: the goal is reached all the same."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path

import pytest

from ioa.client.client import Client
from ioa.group.events import GroupLaunched, Said
from ioa.local.local_system import Program
from ioa.protocol.agents.search import Need, Search
from ioa.protocol.goal_order import GoalOrder
from ioa.protocol.goals import Reason
from ioa.protocol.ids import AgentId
from ioa.protocol.messages import InformTaskResult
from tests.e2e.goals.outcomes import replay_tree
from tests.rig.deadline import eventually
from tests.rig.forks import ChildProcess, ForkServer

pytestmark = pytest.mark.slow

_AGENT = Program("doomed", "tests.e2e.goals.doomed_agent")
_TRADE = "polish the brass gongs of the lighthouse"
_PATIENCE = timedelta(seconds=30)


@asynccontextmanager
async def _process(forks: ForkServer) -> AsyncIterator[ChildProcess]:
    """Run the agent; on leaving, end it by SIGTERM unless it is dead."""
    process = await forks.start(_AGENT)
    try:
        yield process
    finally:
        await process.stop(_PATIENCE.total_seconds())


async def _is_found(system: Client, agent_id: str, trade: str) -> bool:
    hits = (await system.find_agents(Search(needs=(Need(text=trade),)))).merged
    return any(hit.card.agent_id == agent_id for hit in hits)


@pytest.mark.parametrize(
    ("point", "attempts"),
    [
        ("after-assignment", ["1"]),
        ("running", ["1", "2"]),
        ("journalled", ["1"]),
        ("concluding", ["1"]),
        *(
            pytest.param(point, attempts, marks=pytest.mark.nightly)
            for attempts, points in (
                (["1"], ["launched", "thinking", "before-assignment", "before-result", "after-result"]),
                (["1", "2"], ["finished"]),
            )
            for point in points
        ),
    ],
)
async def test_a_killed_agent_carries_on_where_it_was(
    system: Client, way_to_the_system: dict[str, str], tmp_path: Path, point: str, attempts: list[str]
) -> None:
    """Killed at one point and started again, the agent ends the goal: one result, and the function run no more than needed."""
    agent_id, trade = f"doomed-{point}", f"{_TRADE} {point}"
    env = {
        **way_to_the_system,
        "IOA_AGENT_DATA": str(tmp_path / "memory"),
        "DOOMED_AT": point,
        "DOOMED_FOLDER": str(tmp_path),
    }
    forks = ForkServer(tmp_path, env)
    async with _process(forks) as first:
        await eventually(lambda: _is_found(system, agent_id, trade), within=_PATIENCE)
        goal_id = await system.submit(GoalOrder(goal=trade, agent=AgentId(agent_id), timeout=60))
        async with asyncio.timeout(_PATIENCE.total_seconds()):
            died_of = await first.wait()
    async with _process(forks), asyncio.timeout(_PATIENCE.total_seconds()):
        result = await system.wait_for_result(goal_id)

    groups = await replay_tree(system, result.comm_id)
    events = [event for group in groups.values() for event in group]
    reported = [event for event in events if isinstance(event, Said) and isinstance(event.message.payload, InformTaskResult)]
    launched = [event for event in events if isinstance(event, GroupLaunched)]
    runs = (tmp_path / "runs").read_text().split()

    assert (died_of, result.reason, runs, len(reported), len(launched)) == (-signal.SIGKILL, Reason.CONCLUDED, attempts, 1, 1), (
        forks.log_of(_AGENT).read_text()
    )
    assert f"polished in attempt {attempts[-1]}" in result.content
