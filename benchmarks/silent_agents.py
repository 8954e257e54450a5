"""Real agent clients, with their memory in SQLite, whose brain says 200 bytes in turn and thinks nothing."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from nats.aio.client import Client

from benchmarks import machine
from benchmarks.parts import Parts
from benchmarks.silent_groups import create_charter, launch, say_something
from ioa.adapters.nats.nats_agent_network import NatsAgentNetwork
from ioa.adapters.nats.system_client import NatsSystemClient
from ioa.adapters.nats.wire.connection import NatsSettings, open_connection
from ioa.adapters.sqlite_store import open_sqlite_store
from ioa.adapters.system_clock import RandomIds, SystemClock
from ioa.adapters.this_process import new_session
from ioa.agent.agent_ports import AgentPorts
from ioa.agent.agent_runtime import AgentRuntime, RuntimeOptions
from ioa.agent.brain_port import TaskView
from ioa.agent.definition import AgentDefinition
from ioa.agent.turn_view import TurnView
from ioa.group.floor import next_living
from ioa.ports.brain_types import Mission, NobodyFits, TeamLaunch, TeamTools, Utterance
from ioa.protocol.ids import AgentId
from ioa.protocol.messages import Conclusion, Discussion
from ioa.runtime.process import StopSignal

_POLL_SECONDS = 0.02


@dataclass(frozen=True)
class Conversation:
    """How long one took and what it cost."""

    seconds: float
    by_part: Mapping[str, float]
    hops: Sequence[float]


class SilentBrain:
    """Pass the floor on with 200 bytes, for ever; note when it was asked to speak."""

    def __init__(self) -> None:
        self.asked_at: list[float] = []
        self._chance = random.Random(0)

    async def form_team(self, mission: Mission, tools: TeamTools) -> TeamLaunch | NobodyFits:
        """Find nobody."""
        return NobodyFits(needs=(mission.text,))

    async def speak(self, view: TurnView) -> Utterance:
        """Give the floor to the member that joined next."""
        self.asked_at.append(time.perf_counter())
        return Discussion(content=say_something(self._chance), next_speaker=next_living(view.state, view.me))

    async def conclude(self, view: TurnView) -> Conclusion:
        """End the conversation."""
        return Conclusion(content="Enough was said.")

    async def approach(self, task: TaskView, tools: TeamTools) -> TeamLaunch | None:
        """Work alone."""
        return None


async def measure_agents(parts: Parts, agents: int, turns: int, counted: Mapping[str, Sequence[int]]) -> Conversation:
    """Let agents talk in one group until no turn is left."""
    brain, stop = SilentBrain(), StopSignal()
    ids = [AgentId(f"agent-{agents}-{turns}-{number}") for number in range(agents)]
    async with AsyncExitStack() as stack:
        client = await stack.enter_async_context(open_connection(NatsSettings(parts.url, "silent-agents")))
        clients = [await _create_agent(stack, agent_id, brain, client, parts.folder / agent_id) for agent_id in ids]
        group = await stack.enter_async_context(asyncio.TaskGroup())
        stack.callback(stop.set)
        for joined in clients:
            group.create_task(joined.run(stop))
        system, charter = NatsSystemClient(client), create_charter(ids, turns)
        await until_online(system, ids)
        started = time.perf_counter()
        with machine.measured(counted) as spent:
            await launch(client, [charter])
            await system.wait_for_result(charter.goal_id)
        seconds = time.perf_counter() - started
    hops = [later - earlier for earlier, later in pairwise(brain.asked_at)]
    return Conversation(seconds, spent.by_part, hops)


async def until_online(system: NatsSystemClient, ids: Sequence[AgentId]) -> None:
    """Wait until the registry counts all of these agents as online."""
    while True:
        online = {status.card.agent_id for status in await system.agents(online_only=True)}
        if online.issuperset(ids):
            return
        await asyncio.sleep(_POLL_SECONDS)


def _repeat(task: str) -> str:
    return task


async def _create_agent(stack: AsyncExitStack, agent_id: AgentId, brain: SilentBrain, client: Client, folder: Path) -> AgentRuntime:
    agent = AgentDefinition(agent_id, description="Says something.")
    agent.task(_repeat)
    store = await stack.enter_async_context(open_sqlite_store(folder / "memory.sqlite"))
    options, clock, ids = RuntimeOptions(folder / "groups"), SystemClock(), RandomIds()
    ports = AgentPorts(NatsAgentNetwork(client), store, clock, ids, brain)
    return AgentRuntime(agent, agent.card_as(agent_id), ports, new_session(clock, ids), options)
