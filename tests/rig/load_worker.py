"""Agents for load, several in one process: `python -m tests.rig.load_worker`.

Each writes down what an outsider must know to judge the system afterwards: every run of a task's function, when it begins and when
it returns, and every message that was accepted. A line is one write, so that it is whole or not there whenever the process dies.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path

from pydantic import Field

from ioa.adapters.nats.nats_agent_network import NatsAgentNetwork
from ioa.adapters.nats.wire.connection import Connection, open_connection
from ioa.adapters.sqlite_store import open_sqlite_store
from ioa.adapters.system_clock import RandomIds, SystemClock
from ioa.adapters.this_process import new_session
from ioa.agent.agent_ports import AgentPorts
from ioa.agent.agent_runtime import AgentRuntime, RuntimeOptions
from ioa.agent.definition import AgentDefinition
from ioa.agent.task_context import TaskContext
from ioa.concurrency import TaskGroup
from ioa.group.requests import Accepted, Rejected
from ioa.protocol.ids import AgentId
from ioa.protocol.messages import InformTaskProgress, Message
from ioa.runtime.process import StopSignal, run_process
from ioa.runtime.settings import ProcessSettings
from ioa.telemetry.fault_points import fault_point
from tests.rig.load_brain import POOL, LoadBrain, observe_and_speak
from tests.rig.oracle import answer_to, duration_of


class LoadSettings(ProcessSettings):
    """What a process of load agents is told. `load_agents` and `load_roster` are ids with commas between."""

    agent_data: Path = Field(default=Path(".ioa/agents"))
    load_agents: str = Field(default="", description="the agents of a process of the load, with commas between")
    load_roster: str = Field(default="", description="all agents of the load, with commas between")
    load_notes: Path = Field(default=Path("notes.jsonl"), description="where runs and accepted messages are written down")
    load_searches: bool = Field(default=False, description="find teams by discovery instead of by the roster")
    load_credentials: Path | None = Field(default=None, description="folder with a seed for each agent; none: connect without")


class Notes:
    """A file of JSON lines."""

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)

    def write(self, **fields: object) -> None:
        """Append one line."""
        os.write(self._file, json.dumps(fields).encode() + b"\n")


class WitnessedNetwork(NatsAgentNetwork):
    """The network as an agent sees it; what was accepted is written down."""

    def __init__(self, client: Connection, notes: Notes, *, twice: bool = False) -> None:
        super().__init__(client)
        self._notes = notes
        self._copies = 2 if twice else 1

    async def _say_to_a_router(self, message: Message) -> Accepted | Rejected:
        """Send a message, or two copies of it at once, and note an acceptance before it ends the turn of the sender."""
        copies = (super(WitnessedNetwork, self)._say_to_a_router(message) for _ in range(self._copies))
        answer, *_ = await asyncio.gather(*copies, return_exceptions=True)
        if isinstance(answer, BaseException):
            raise answer
        # A report of progress may be taken in without an entry of its own.
        if isinstance(answer, Accepted) and not isinstance(message.payload, InformTaskProgress):
            header = message.header
            self._notes.write(note="accepted", comm_id=header.comm_id, message_id=header.message_id, seq=answer.seq)
        return answer


def create_load_agent(agent_id: AgentId, notes: Notes) -> AgentDefinition:
    """Build an agent whose tasks take a moment that follows from their words."""
    agent = AgentDefinition(
        agent_id, description=f"Carries load as {agent_id}.", examples=[f"load for {agent_id}"], may_team_up=True
    )

    @agent.task
    async def run(task: str, ctx: TaskContext) -> str:
        notes.write(note="began", agent_id=agent_id, task=task, task_id=ctx.task_id, attempt=ctx.attempt)
        fault_point("agent.task_running")
        answer = answer_to(task)
        least, most = duration_of(task)
        await asyncio.sleep(random.Random(task).uniform(least.total_seconds(), most.total_seconds()))
        notes.write(note="returned", agent_id=agent_id, task=task, task_id=ctx.task_id, attempt=ctx.attempt)
        return f"{answer or task} in attempt {ctx.attempt}"

    return agent


async def _serve(settings: LoadSettings, stop: StopSignal) -> None:
    agents = [AgentId(name) for name in settings.load_agents.split(",")]
    roster = [AgentId(name) for name in settings.load_roster.split(",")]
    notes, clock, ids = Notes(settings.load_notes), SystemClock(), RandomIds()
    async with AsyncExitStack() as stack:
        clients = await _open_clients(settings, agents, stack)
        async with TaskGroup() as group:
            for agent_id in agents:
                client = clients[agent_id]
                network = WitnessedNetwork(client, notes)
                agent = create_load_agent(agent_id, notes)
                observe_and_speak(agent, roster, speaks=roster.index(agent_id) % 3 == 0)
                card = agent.card_as(agent_id).model_copy(update={"pool": POOL})
                folder = settings.agent_data / agent_id
                store = await stack.enter_async_context(open_sqlite_store(folder / "memory.sqlite"))
                brain = LoadBrain(roster, searches=settings.load_searches)
                options = RuntimeOptions(folder / "groups")
                session = new_session(clock, ids)
                ports = AgentPorts(network, store, clock, ids, brain)
                group.create_task(AgentRuntime(agent, card, ports, session, options).run(stop))


async def _open_clients(settings: LoadSettings, agents: Sequence[AgentId], stack: AsyncExitStack) -> Mapping[AgentId, Connection]:
    """Connect each agent with its own seed; without credentials, all agents share a connection."""
    folder = settings.load_credentials
    if folder is None:
        return dict.fromkeys(agents, await stack.enter_async_context(open_connection(settings.nats(settings.load_agents))))
    seeds = {agent_id: replace(settings.nats(agent_id), seed=str(folder / POOL / agent_id)) for agent_id in agents}
    return {agent_id: await stack.enter_async_context(open_connection(nats)) for agent_id, nats in seeds.items()}


def environment_of(agents: Sequence[AgentId], roster: Sequence[AgentId], data: Path, notes: Path) -> dict[str, str]:
    """Tell a worker who it runs."""
    return {
        "IOA_AGENT_DATA": str(data),
        "IOA_LOAD_AGENTS": ",".join(agents),
        "IOA_LOAD_ROSTER": ",".join(roster),
        "IOA_LOAD_NOTES": str(notes),
    }


if __name__ == "__main__":
    run_process(LoadSettings, _serve, name="ioa-load")
