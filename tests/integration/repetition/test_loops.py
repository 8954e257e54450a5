"""A group whose model talks in circles, on a real nats-server: it ends in a result, and its log says why it was made to."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from datetime import timedelta
from pathlib import Path

import pytest

from ioa.adapters.nats_connection import NatsSettings, open_connection
from ioa.adapters.nats_server import NatsServer
from ioa.group.events import Event, RepetitionRefused, Said, kind_of
from ioa.ports.brain import Brain
from ioa.protocol.goal_order import GoalOrder
from ioa.protocol.goals import GoalResult, Reason
from ioa.protocol.ids import CommId, GoalId, comm_id_of_goal
from ioa.protocol.messages import Discussion, Phase
from ioa.runtime.system import System, open_system
from ioa.testing.deadline import eventually
from ioa.testing.processes import open_services
from tests.e2e.goals.outcomes import replay_tree
from tests.integration.repetition.looping_agents import (
    BOSS,
    TASK,
    TEAM,
    Bench,
    CheckingBrain,
    TrustingBrain,
    looping_model,
    open_agents,
)

_PATIENCE = timedelta(seconds=40)
MAX_TURNS = 30


@pytest.fixture
async def system(nats_server: NatsServer, tmp_path: Path) -> AsyncIterator[System]:
    """The control plane, ready."""
    async with open_services(nats_server.url, tmp_path / "logs", {}) as processes:
        await processes.start("ioa_registry", "ioa_groups", replicas=1)
        await processes.start("ioa_router")
        async with open_system(NatsSettings(nats_server.url, "loops"), patience=_PATIENCE) as opened:
            yield opened


@pytest.fixture
async def bench() -> Bench:
    """What the agents' tools wait for."""
    return Bench()


class Loop:
    """A goal whose team talks in circles."""

    def __init__(self, system: System, goal_id: GoalId) -> None:
        self._system = system
        self._goal_id = goal_id
        self.comm_id: CommId = comm_id_of_goal(goal_id)

    async def reach(self, phase: Phase) -> None:
        """Wait until the group is in a phase."""

        async def now() -> Phase | None:
            entries = await self._system.entries(self.comm_id)
            return entries[-1].entry.state.phase if entries else None

        await eventually(now, lambda found: found is phase, within=_PATIENCE)

    async def end(self) -> tuple[GoalResult, Sequence[Event]]:
        """The result and the log, each entry of which is what the machine says."""
        async with asyncio.timeout(_PATIENCE.total_seconds()):
            result = await self._system.wait_for_result(self._goal_id)
        return result, (await replay_tree(self._system, self.comm_id))[self.comm_id]


async def _launch(system: System) -> Loop:
    await eventually(lambda: system.agents(online_only=True), lambda there: len(there) == len(TEAM), within=_PATIENCE)
    order = GoalOrder.model_validate({"goal": "Chart the sales.", "agent": BOSS, "max_turns": MAX_TURNS, "timeout": 120})
    return Loop(system, await system.launch(order))


def _kinds(events: Sequence[Event]) -> list[str]:
    """What happened, without how tasks went."""
    return [str(kind_of(event)) for event in events if not str(kind_of(event)).startswith("INFORM")]


async def test_talk_in_circles_ends_in_a_conclusion(system: System, nats_server: NatsServer, bench: Bench, tmp_path: Path) -> None:
    """One message is a turn; who says it again twice makes the owner conclude, and both refusals are on record."""
    brain: Brain = TrustingBrain(looping_model())
    async with open_connection(NatsSettings(nats_server.url, "agents")) as client, open_agents(client, brain, bench, tmp_path):
        result, events = await (await _launch(system)).end()
    refused = [(event.by, event.repeats_turn) for event in events if isinstance(event, RepetitionRefused)]
    assert (result.reason, result.content, refused) == (Reason.CONCLUDED, "We agree.", [("bob", 1), ("bob", 1)])
    assert _kinds(events) == ["group_launched", "DISCUSSION", "repetition_refused", "repetition_refused", "CONCLUSION"]


async def test_talk_in_circles_waits_for_what_is_open(
    system: System, nats_server: NatsServer, bench: Bench, tmp_path: Path
) -> None:
    """With a task open the group is paused until the task is done; the talk that goes on after that ends in the conclusion."""
    brain: Brain = TrustingBrain(looping_model(), [TASK])
    async with open_connection(NatsSettings(nats_server.url, "agents")) as client, open_agents(client, brain, bench, tmp_path):
        loop = await _launch(system)
        await loop.reach(Phase.PAUSED)
        bench.may_end.set()
        result, events = await loop.end()
    refusals = ["repetition_refused"] * 2
    assert (result.reason, result.content) == (Reason.CONCLUDED, "eve: north, south and west")
    assert _kinds(events) == ["group_launched", "ASYNC_TASK_ASSIGNMENT", "DISCUSSION", *refusals, *refusals, "CONCLUSION"]


async def test_the_brain_that_ships_does_not_talk_in_circles(
    system: System, nats_server: NatsServer, bench: Bench, tmp_path: Path
) -> None:
    """It notices before it speaks, and the rules go on where the model cannot: few turns, a typed result, nothing said twice."""
    bench.may_end.set()
    brain: Brain = CheckingBrain(looping_model())
    async with open_connection(NatsSettings(nats_server.url, "agents")) as client, open_agents(client, brain, bench, tmp_path):
        result, events = await (await _launch(system)).end()
    talk = [event for event in events if isinstance(event, Said) and isinstance(event.message.payload, Discussion)]
    assert (result.reason, len(talk)) == (Reason.CONCLUDED, 1) and len(events) < MAX_TURNS
