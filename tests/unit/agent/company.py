"""A few agents at work on a network in memory, which a test can crash, stop and start again one by one."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

from ioa.adapters.this_process import new_session
from ioa.agent.agent_ports import AgentPorts
from ioa.agent.agent_runtime import AgentRuntime, RuntimeOptions
from ioa.agent.brain_port import Brain
from ioa.agent.definition import AgentDefinition
from ioa.errors import ConflictError
from ioa.group.events import Said
from ioa.group.requests import LaunchGroup
from ioa.group.state import GroupState
from ioa.ports.brain_types import Invite, TeamLaunch, Utterance
from ioa.protocol.goals import Goal, GoalResult
from ioa.protocol.ids import LOCAL, AgentId, CommId, GoalId, GoalName, SessionId, TaskId, task_id_of_turn
from ioa.protocol.messages import (
    AsyncTaskAssignment,
    ConcludeGroupDiscussion,
    Conclusion,
    InformTaskResult,
    Message,
    Pause,
    SyncTaskAssignment,
    TaskSpec,
)
from ioa.testing.manual_clock import CountedIds, ManualClock
from ioa.testing.scripted_brain import ScriptedBrain
from tests.rig.agent_stores import UnreliableStore
from tests.rig.deadline import eventually
from tests.rig.memory_network import MemoryNetwork

GOAL = Goal(goal_id=GoalId("goal-1"), goal="Have it done.", agent=AgentId("lead"))
T1 = TaskId("t1-t1")


def task(name: str = "t1", assignee: str = "worker", turn: int = 1) -> TaskSpec:
    """Return a task that is assigned in a turn."""
    return TaskSpec(task_id=task_id_of_turn(turn, name), assignee=AgentId(assignee), task_desc=f"do {name}")


def leading(*utterances: Utterance | Invite, members: Sequence[str] = ("worker",)) -> ScriptedBrain:
    """Return a leader that sends messages and concludes."""
    return ScriptedBrain(
        teams=[TeamLaunch(members=tuple(map(AgentId, members)))],
        utterances=[*utterances, ConcludeGroupDiscussion()],
        conclusions=[Conclusion(content="All done.")],
    )


def one_task() -> ScriptedBrain:
    """A leader that has one thing done by the worker, waits for it and concludes."""
    return leading(SyncTaskAssignment(tasks=(task(),)))


def task_beside() -> ScriptedBrain:
    """Return a leader that assigns an asynchronous task, pauses for it and concludes."""
    return leading(AsyncTaskAssignment(tasks=(task(),)), Pause(triggers=(T1,)))


def working(function: Callable[..., Any], agent_id: str = "worker") -> AgentDefinition:
    """An agent that works as a function does."""
    agent = AgentDefinition(agent_id, description=f"{agent_id} works.", examples=["work"], may_team_up=True)
    agent.task(function)
    return agent


def idle(agent_id: str) -> AgentDefinition:
    """Return an agent whose task function answers at once."""
    return working(lambda words: f"{agent_id} did it", agent_id)


class Stop:
    """A stop signal for a client."""

    def __init__(self) -> None:
        self._told = asyncio.Event()

    async def wait(self) -> None:
        """Return when it is time."""
        await self._told.wait()

    def tell(self) -> None:
        """It is time."""
        self._told.set()


@dataclass
class Member:
    """An agent with its brain, its store and its client, which can crash."""

    agent: AgentDefinition
    brain: Brain
    store: UnreliableStore
    stop: Stop = field(default_factory=Stop)
    client: AgentRuntime | None = None
    session: SessionId | None = None
    refusal: ConflictError | None = None
    running: asyncio.Task[None] | None = None


class Company:
    """The network and the members by id."""

    def __init__(
        self,
        group: asyncio.TaskGroup,
        folder: Path,
        drain: timedelta,
        silence: timedelta,
        takeover: timedelta,
        network: MemoryNetwork,
    ) -> None:
        self.network = network
        self.folder = folder
        self.members: dict[str, Member] = {}
        self._group = group
        self._drain = drain
        self._silence = silence
        self._takeover = takeover
        self._ids = CountedIds()

    async def start(self, agent: AgentDefinition, brain: Brain | None = None) -> Member:
        """Start an agent; return when it is registered."""
        member = self.hire(agent, brain)
        await self.restart(agent.agent_id)
        return member

    def hire(self, agent: AgentDefinition, brain: Brain | None = None) -> Member:
        """Make an agent a member, without starting it."""
        member = Member(agent, brain or ScriptedBrain(), self._empty_store())
        return self.members.setdefault(agent.agent_id, member)

    def _empty_store(self) -> UnreliableStore:
        return UnreliableStore(self.folder / f"{self._ids.new('memory')}.sqlite")

    async def restart(self, agent_id: str, *, forgetful: bool = False) -> None:
        """Start a member's client on the memory it left, or on an empty one, and wait until it is online and knows so.

        A process that dies after it was registered, and before it has noted that, keeps its own successor out for a lease.
        """
        self.begin(agent_id, forgetful=forgetful)
        member = self.members[agent_id]
        await eventually(lambda: self.network.is_online(AgentId(agent_id)))
        await eventually(member.store.last_session, lambda noted: noted == member.session or not member.store.usable)

    def begin(self, agent_id: str, *, forgetful: bool = False) -> None:
        """Start a member's client; it may be refused."""
        member = self.members[agent_id]
        member.stop = Stop()
        if forgetful:
            member.store = self._empty_store()
            self.network.end_lease(AgentId(agent_id))  # without its store, an agent does not succeed its previous process at once
        options = RuntimeOptions(
            self.folder / agent_id,
            drain=self._drain,
            takeover=self._takeover,
            reform_after=timedelta(milliseconds=1),
            silence=self._silence,
        )
        card = member.agent.card_as(AgentId(agent_id))
        session = new_session(self.network.clock, self._ids)
        member.session = session.session
        ports = AgentPorts(self.network, member.store, self.network.clock, self._ids, member.brain)
        member.client = AgentRuntime(member.agent, card, ports, session, options)
        member.running = self._group.create_task(self._run(member.client, member))

    async def _run(self, client: AgentRuntime, member: Member) -> None:
        try:
            await client.run(member.stop)
        except ConflictError as error:
            member.refusal = error

    async def launch(self, owner: str, *members: str, goal_id: GoalId = GOAL.goal_id) -> None:
        """Launch a group for a goal as the owner's process would; an owner that never started has none."""
        started = self.members.get(owner)
        session = None if started is None else started.session
        others = tuple(AgentId(name) for name in members)
        ticket = await self.network.plane.tickets.of(GoalName(LOCAL, goal_id))
        request = LaunchGroup(owner=AgentId(owner), members=others, goal_id=goal_id, session=session, ticket=ticket)
        await self.network.launch(request)

    async def crash(self, agent_id: str) -> None:
        """Cancel a member's client; its store stays."""
        member = self.members[agent_id]
        assert member.running is not None
        member.running.cancel()
        await asyncio.wait([member.running])

    async def stop(self, agent_id: str) -> None:
        """Stop a member's client, and wait for its end."""
        member = self.members[agent_id]
        assert member.running is not None
        member.stop.tell()
        await member.running

    async def give_task(self, function: Callable[..., Any], lead: ScriptedBrain | None = None) -> None:
        """Start a worker with a function and a leader, by default with one task, and offer the goal."""
        await self.start(working(function))
        await self.start(idle("lead"), lead or one_task())
        await self.network.offer(GOAL)

    async def has_done(self, goal: Goal = GOAL) -> GoalResult:
        """Offer a goal and wait for its result."""
        await self.network.offer(goal)
        return await self.result(goal)

    async def result(self, goal: Goal = GOAL) -> GoalResult:
        """Wait for a goal's result."""
        found = await eventually(lambda: self.network.result(goal))
        assert found is not None
        return found

    def sessions(self, agent_id: str) -> int:
        """How many groups a member follows."""
        client = self.members[agent_id].client
        assert client is not None
        return len(client._sessions)

    async def state(self, comm_id: CommId) -> GroupState | None:
        """Return the state of a group."""
        head = await self.network.log.last(comm_id)
        return head.entry.state if head else None

    async def messages(self, comm_id: CommId) -> list[Message]:
        """Return all messages of a group."""
        entries = await self.network.entries(comm_id)
        return [entry.entry.event.message for entry in entries if isinstance(entry.entry.event, Said)]

    async def task_result(self, comm_id: CommId, task_id: TaskId = T1) -> InformTaskResult:
        """Wait for the result of a task and return the only one there is."""

        async def results() -> list[InformTaskResult]:
            payloads = [message.payload for message in await self.messages(comm_id)]
            return [one for one in payloads if isinstance(one, InformTaskResult) and one.task_id == task_id]

        [only] = await eventually(results)
        return only

    def _has_left(self, agent_id: AgentId) -> bool:
        return not self.sessions(agent_id) and not self.network.open_groups(agent_id)

    async def have_left(self, agent_ids: Sequence[str]) -> bool:
        """Wait until members follow no group and group setup knows it."""
        for agent_id in map(AgentId, agent_ids):
            await eventually(partial(self._has_left, agent_id))
        return True


@asynccontextmanager
async def open_company(
    folder: Path,
    *,
    drain: timedelta = timedelta(seconds=5),
    renew_every: timedelta = timedelta(milliseconds=20),
    task_lease: timedelta = timedelta(seconds=30),
    silence: timedelta = timedelta(milliseconds=20),
    takeover: timedelta = timedelta(0),
) -> AsyncIterator[Company]:
    """Open a company; members that still run at the end are cancelled."""
    async with asyncio.TaskGroup() as group:
        network = MemoryNetwork(ManualClock(), renew_every=renew_every, task_lease=task_lease)
        company = Company(group, folder, drain, silence, takeover, network)
        try:
            yield company
        finally:
            for member in company.members.values():
                if member.running is not None:
                    member.running.cancel()
