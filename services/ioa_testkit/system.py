"""A whole system in a test: the author's agents and the real services in the test's event loop."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

from ioa.adapters.system_clock import RandomIds, SystemClock
from ioa.agent.brain_port import Brain
from ioa.agent.definition import AgentDefinition
from ioa.agent.task_context import TaskContext
from ioa.client.history import conversation
from ioa.client.seat import PersonSeat
from ioa.client.watching import watch
from ioa.concurrency import beside, fail_after
from ioa.group.requests import LaunchGroup
from ioa.hosting.brains import open_minds
from ioa.hosting.host import Crew, check_distinct, host, runtime_options
from ioa.hosting.settings import WorkerSettings
from ioa.ports.agent_network import AgentNetwork, GoalOffer
from ioa.ports.chat_model import ChatModel
from ioa.protocol.cards import AgentCard
from ioa.protocol.goal_order import GoalOrder, parse_goal
from ioa.protocol.ids import AgentId, PoolId, comm_id_of_goal, parse_agent_id
from ioa.protocol.registry import Register
from ioa.telemetry.logs import handed_to_logging
from ioa_testkit.finished import FinishedGoal, News, Progress, transcript_of
from ioa_testkit.planes import Plane, open_nats_plane, until_ready
from ioa_testkit.script_error import ScriptError
from ioa_testkit.scripted_group import ScriptedGroup

_REFORM_AFTER = timedelta(milliseconds=200)
_MODEL_SETTINGS = {"IOA_LLM_PATIENCE": "2"}
"""Timeout of a model's decision in seconds; the plane has the same timeout for goals and groups that wait for a model."""


class RunningSystem:
    """A system with agents that serve in it.

    Attributes:
        client: The client of a user.
    """

    def __init__(self, plane: Plane, progress: Sequence[Progress], within: timedelta) -> None:
        self.client = plane.client
        self._network = plane.network
        self._progress = progress
        self._within = within

    def seat(self, person: str) -> PersonSeat:
        """Return the seat of a person in teams with `human` roles."""
        return PersonSeat(self._network, person, SystemClock())

    async def run(self, goal: str | GoalOrder, *, files: Sequence[Path] = ()) -> FinishedGoal:
        """Publish a goal as a user does, and wait for its result.

        Args:
            goal: The words, or an order with all options of a user.
            files: The input files.

        Raises:
            ScriptError: The goal has no result in time; the error contains the transcript so far.
            InvalidInputError: The goal is invalid, or a file cannot be read.
        """
        order, news, before = _order_of(goal), list[News](), len(self._progress)
        try:
            async with fail_after(self._within.total_seconds()):
                goal_id = await self.client.submit(order, files)
                comm_id = comm_id_of_goal(goal_id, await self.client.user())
                async with watch(self.client, comm_id) as coming:
                    async for one in coming:
                        news.append(one)  # also for the error
                result = await self.client.wait_for_result(goal_id)
        except TimeoutError:
            raise ScriptError(
                f"The goal {order.goal!r} has no result after {self._within.total_seconds():g} s.",
                hint="Does an agent hang? Its captured log may say why; ioa_system.within gives it more time.",
                so_far=transcript_of(news),
            ) from None
        produced = {artifact.name: await self.client.fetch(artifact) for artifact in result.artifacts}
        log = await conversation(self.client, comm_id)
        return FinishedGoal(result, produced, log, self._progress[before:], transcript_of(news))


class System:
    """The value of the fixture `ioa_system`.

    Each call starts an empty system and stops it afterwards: nats-server and the real registry, discovery, group setup and router.
    Two things differ from production: discovery compares words, not meanings, so a goal has to share words with an agent's examples
    or description; and a lease lasts 30 s.

    Args:
        folder: Folder of agents' files and of nats-server's streams.

    Attributes:
        within: How long a test waits for a result.
    """

    def __init__(self, folder: Path) -> None:
        self.within = timedelta(seconds=10)
        self._folder = folder
        self._opened = 0

    async def run(
        self,
        goal: str | GoalOrder,
        *,
        agents: Sequence[AgentDefinition],
        files: Sequence[Path] = (),
        brain: Brain | None = None,
        model: ChatModel | None = None,
    ) -> FinishedGoal:
        """Serve agents, publish a goal as a user does, and wait for its result.

        Args:
            goal: The words, or an order with all options of a user.
            agents: The agents. Each may lead the goal.
            files: The input files.
            brain: Decides the messages of the agents; rules by default.
            model: A language model instead, such as a `ScriptedModel`, also for tasks. Two seconds of failures fail the goal.

        Raises:
            ScriptError: The goal has no result in time; the error contains the transcript so far.
            InvalidInputError: The goal or an agent is invalid, or a file cannot be read.
        """
        async with self.serve(*agents, brain=brain, model=model) as running:
            return await running.run(goal, files=files)

    @asynccontextmanager
    async def serve(
        self, *agents: AgentDefinition, brain: Brain | None = None, model: ChatModel | None = None
    ) -> AsyncIterator[RunningSystem]:
        """Serve agents while the block runs, for tests with several goals."""
        progress: list[Progress] = []
        async with self._open_plane(agents, brain, model, progress) as plane:
            await until_ready(plane.inspection, len(agents), self.within)
            yield RunningSystem(plane, progress, self.within)

    @asynccontextmanager
    async def group(
        self,
        goal: str | GoalOrder,
        *,
        agent: AgentDefinition,
        members: Sequence[str] = ("lead",),
        files: Sequence[Path] = (),
        brain: Brain | None = None,
        model: ChatModel | None = None,
    ) -> AsyncIterator[ScriptedGroup]:
        """Open a group with an agent and scripted members while the block runs.

        Args:
            goal: The goal of the group, led by the first member.
            agent: The agent under test.
            members: Names of the scripted members; the first opens the group, and has the floor.
            files: The input files.
            brain: Decides the messages of the agent under test; rules by default.
            model: A language model instead.

        Raises:
            ScriptError: A message is rejected, or an expected event does not arrive.
            InvalidInputError: The goal, the agent or a member's name is invalid.
        """
        scripted = [parse_agent_id(member) for member in members]
        owner, under_test = scripted[0], AgentId(agent.agent_id)
        check_distinct([*scripted, under_test])
        order, progress = _order_of(goal).model_copy(update={"agent": owner}), list[Progress]()
        async with self._open_plane([agent], brain, model, progress) as plane:
            for member in scripted:
                does = "A member that a test speaks for."
                card = AgentCard(agent_id=member, name=member, description=does, pool=PoolId(member))
                await plane.network.register(Register(card=card))
            await until_ready(plane.inspection, len(scripted) + 1, self.within)
            goal_id = await plane.client.submit(order, files)
            opener = _GroupOpener(plane.network, owner, (under_test, *scripted[1:]))
            taking = plane.network.take_goals(owner, PoolId(owner), opener, max_concurrent=1, anybodys=False)
            group = ScriptedGroup(plane, goal_id, under_test, scripted, progress, self.within)
            async with beside(group.follow()):
                async with beside(taking):
                    await group.until_open()
                yield group

    @asynccontextmanager
    async def _open_plane(
        self, agents: Sequence[AgentDefinition], brain: Brain | None, model: ChatModel | None, progress: list[Progress]
    ) -> AsyncIterator[Plane]:
        """Start the services and the agents, which use a brain or a model if they have none."""
        check_distinct([agent.agent_id for agent in agents])
        agents = [agent.with_card(brain=agent.brain or brain, model=agent.model or model) for agent in agents]
        hosted = [host(_observed(agent, progress.append)) for agent in agents]
        self._opened += 1
        settings = WorkerSettings(agent_data=self._folder / f"agents-{self._opened}", drain=timedelta(0))
        options = replace(runtime_options(settings), takeover=timedelta(0), reform_after=_REFORM_AFTER)
        with handed_to_logging():
            async with (
                open_minds(agents, _MODEL_SETTINGS) as minds,
                open_nats_plane(self._folder / f"nats-{self._opened}") as plane,
            ):
                members = list(zip(hosted, minds, strict=True))
                crew = Crew(members, settings, plane.network, SystemClock(), RandomIds(), options)
                async with crew.running():
                    yield plane


@dataclass(frozen=True)
class _GroupOpener:
    """A `GoalLeader` that launches a group with given members."""

    network: AgentNetwork
    owner: AgentId
    members: tuple[AgentId, ...]

    async def lead(self, offer: GoalOffer) -> None:
        """Launch the group."""
        name = offer.goal.name
        await self.network.launch(
            LaunchGroup(owner=self.owner, members=self.members, goal_id=name.goal_id, user=name.user, ticket=offer.ticket)
        )

    async def give_up(self, offer: GoalOffer, why: str) -> None:
        """Do nothing: the test fails because the group does not open."""


def _observed(agent: AgentDefinition, note: Callable[[Progress], None]) -> AgentDefinition:
    """Return a copy of an agent that also notes each progress report; the group hears only the newest report of a second."""

    def watched(opened: AgentDefinition) -> AgentDefinition:
        def arguments(task: str, context: TaskContext) -> tuple[Any, ...]:
            report = context.progress

            def progress(content: str, fraction: float | None = None) -> None:
                report(content, fraction)
                note(Progress(AgentId(agent.agent_id), context.task_id, content, fraction))

            context.progress = progress  # type: ignore[method-assign]
            return opened.arguments(task, context)

        copy = opened.with_card()
        copy.arguments = arguments  # type: ignore[method-assign]
        return copy

    @asynccontextmanager
    async def open_watched() -> AsyncIterator[AgentDefinition]:
        async with agent.opened() as opened:
            yield watched(opened)

    copy = agent.with_card()
    copy.opened = open_watched  # type: ignore[method-assign]
    return copy


def _order_of(goal: str | GoalOrder) -> GoalOrder:
    return parse_goal(goal.encode()) if isinstance(goal, str) else goal
