"""A member of a group in memory, and the files that it was told of."""

from __future__ import annotations

from pathlib import Path

from ioa.agent.tasks.task_files import GroupFiles
from ioa.group.requests import LaunchGroup
from ioa.protocol.cards import AgentCard
from ioa.protocol.goals import Artifact, Goal
from ioa.protocol.ids import LOCAL, AgentId, GoalId, GoalName, PoolId, SessionId
from ioa.protocol.registry import Register, Session
from ioa.testing.manual_clock import NEW_YEAR, ManualClock
from tests.rig.memory_network import MemoryNetwork
from tests.rig.stored_files import store_file

ME = AgentId("reader")
GOAL = GoalId("goal-1")


async def files_of_group(folder: Path, *given: tuple[str, bytes]) -> tuple[GroupFiles, tuple[Artifact, ...]]:
    """Open a group of one for a goal with these inputs, and return its files as the member has them."""
    network = MemoryNetwork(ManualClock())
    inputs = tuple([await store_file(network.artifacts, f"shared/{name}", name, data, "text/csv") for name, data in given])
    card = AgentCard(agent_id=ME, name=ME, description="Reads.", pool=PoolId(ME))
    session = Session(session=SessionId("s1"), host="box", pid=7, since=NEW_YEAR)
    await network.register(Register(card=card, session=session))
    comm_id = await network.offer(Goal(goal_id=GOAL, goal="Read.", inputs=inputs))
    ticket = await network.plane.tickets.of(GoalName(LOCAL, GOAL))
    await network.launch(LaunchGroup(owner=ME, members=(), goal_id=GOAL, session=session.session, ticket=ticket))
    return GroupFiles(network, ME, comm_id, folder / comm_id, session.session), inputs
