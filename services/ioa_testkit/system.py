"""A whole system in a test: the author's agents and the real services in the test's event loop."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

from ioa.adapters.sqlite_store import open_sqlite_store
from ioa.adapters.system_clock import RandomIds, SystemClock
from ioa.adapters.this_process import new_session
from ioa.agent.agent_ports import AgentPorts
from ioa.agent.agent_runtime import AgentRuntime, RuntimeOptions
from ioa.agent.brain_port import Brain
from ioa.agent.definition import AgentDefinition
from ioa.agent.model import Budget
from ioa.agent.rules import RuleBrain
from ioa.agent.task_context import TaskContext
from ioa.beside import beside
from ioa.cancellation import fail_after
from ioa.client.client import Client
from ioa.client.history import conversation
from ioa.client.seat import PersonSeat
from ioa.client.watching import watch
from ioa.errors import InvalidInputError, NoAgentError, NotFoundError, UnavailableError
from ioa.group.requests import LaunchGroup
from ioa.hosting.brains import Mind, check_models, mind_of, open_minds
from ioa.ports.agent_network import AgentNetwork
from ioa.ports.chat_model import ChatModel
from ioa.protocol.cards import AgentCard
from ioa.protocol.goal_order import GoalOrder, parse_goal
from ioa.protocol.ids import LOCAL, AgentId, PoolId, comm_id_of_goal, parse_agent_id
from ioa.protocol.registry import Register
from ioa.runtime.process import StopSignal
from ioa.telemetry.logs import handed_to_logging
from ioa_testkit.finished import FinishedGoal, News, Progress, transcript_of
from ioa_testkit.given_goals import GivenGoals
from ioa_testkit.planes import Plane, open_nats_plane
from ioa_testkit.script_error import ScriptError
from ioa_testkit.scripted_group import ScriptedGroup

_GRACE = timedelta(milliseconds=200)
_MODEL_PATIENCE = timedelta(seconds=2)
"""Timeout of a model's decision, and of goals and groups that wait for an unavailable model."""
_POLL_SECONDS = 0.005
_NOT_YET = (NotFoundError, NoAgentError, UnavailableError)
"""Errors of services that have not received the registrations yet."""


class RunningSystem:
    """A system with agents that serve in it.

    Attributes:
        client: The client of a user.
    """

    def __init__(self, client: Client, network: AgentNetwork, progress: Sequence[Progress], within: timedelta) -> None:
        self.client = client
        self._network = network
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
        async with self._open_plane() as plane, self._serving(plane, agents, _mind(brain, model), progress):
            await self._until_found(plane.client, [AgentId(agent.agent_id) for agent in agents])
            yield RunningSystem(plane.client, plane.network, progress, self.within)

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
        under_test = AgentId(agent.agent_id)
        _refuse_twice([*scripted, under_test])
        order, progress = _order_of(goal).model_copy(update={"agent": scripted[0]}), list[Progress]()
        async with self._open_plane() as plane, self._serving(plane, [agent], _mind(brain, model), progress):
            for member in scripted:
                does = "A member that a test speaks for."
                card = AgentCard(agent_id=member, name=member, description=does, pool=PoolId(member))
                await plane.network.register(Register(card=card))
            await self._until_found(plane.client, [under_test, *scripted])
            goal_id = await plane.client.submit(order, files)
            members, given = (under_test, *scripted[1:]), GivenGoals()
            taking = plane.network.take_goals(scripted[0], PoolId(scripted[0]), given, max_concurrent=1, anybodys=False)

            async def open_group() -> None:
                ticket = given.ticket_of(goal_id)
                await plane.network.launch(
                    LaunchGroup(owner=scripted[0], members=members, goal_id=goal_id, user=LOCAL, ticket=ticket)
                )

            async with beside(taking):
                await self._until_answered(open_group, "The group could not be opened")
            group = ScriptedGroup(plane.client, plane.network, goal_id, under_test, scripted, progress, self.within)

            async def hear() -> None:
                async with watch(plane.client, comm_id_of_goal(goal_id)) as coming:
                    async for news in coming:
                        group.hear(news)

            async with beside(hear()):
                await group.until_open()
                yield group

    @asynccontextmanager
    async def _open_plane(self) -> AsyncIterator[Plane]:
        self._opened += 1
        with handed_to_logging():
            async with open_nats_plane(self._folder / f"nats-{self._opened}") as plane:
                yield plane

    @asynccontextmanager
    async def _serving(
        self, plane: Plane, agents: Sequence[AgentDefinition], shared: Mind, progress: list[Progress]
    ) -> AsyncIterator[None]:
        _refuse_twice([agent.agent_id for agent in agents])
        for agent in agents:
            _ = agent.function
        if shared.chat is None:
            check_models(agents, {})
        stop = StopSignal()
        async with AsyncExitStack() as stack:
            minds = await stack.enter_async_context(open_minds(agents, {}, shared))
            opened = [await stack.enter_async_context(agent.opened()) for agent in agents]
            followed = [_observed(agent, progress.append) for agent in opened]
            clients = [await self._client(stack, plane, agent, mind) for agent, mind in zip(followed, minds, strict=True)]
            async with beside(*(client.run(stop) for client in clients), stop=stop.set):
                yield

    async def _client(self, stack: AsyncExitStack, plane: Plane, agent: AgentDefinition, mind: Mind) -> AgentRuntime:
        clock, ids, agent_id = SystemClock(), RandomIds(), AgentId(agent.agent_id)
        folder = self._folder / f"agents-{self._opened}" / agent_id
        store = await stack.enter_async_context(open_sqlite_store(folder / "memory.sqlite"))
        options = RuntimeOptions(
            folder / "groups",
            drain=timedelta(0),
            grace=_GRACE,
            takeover=timedelta(0),
            reform_after=_GRACE,
        )
        ports = AgentPorts(plane.network, store, clock, ids, mind.brain, mind.chat)
        return AgentRuntime(agent, agent.card_as(agent_id), ports, new_session(clock, ids), options)

    async def _until_found(self, client: Client, agents: Sequence[AgentId]) -> None:
        async def look() -> None:
            online = {status.card.agent_id for status in await client.agents(online_only=True)}
            if missing := [agent_id for agent_id in agents if agent_id not in online]:
                raise NotFoundError(f"{', '.join(missing)} did not register.")
            if (await client.index_status()).cards < len(agents):
                raise NotFoundError("Discovery has not heard of all agents.")

        await self._until_answered(look, "The system is not ready")

    async def _until_answered(self, ask: Callable[[], Awaitable[None]], otherwise: str) -> None:
        loop = asyncio.get_running_loop()
        until = loop.time() + self.within.total_seconds()
        while True:
            try:
                return await ask()
            except _NOT_YET as error:
                if loop.time() > until:
                    raise UnavailableError(f"{otherwise}: {error}") from error
            await asyncio.sleep(_POLL_SECONDS)


def _observed(agent: AgentDefinition, note: Callable[[Progress], None]) -> AgentDefinition:
    """Return a copy of an agent that also notes each progress report; the group hears only the newest report of a second."""

    def arguments(task: str, context: TaskContext) -> tuple[Any, ...]:
        report = context.progress

        def progress(content: str, fraction: float | None = None) -> None:
            report(content, fraction)
            note(Progress(AgentId(agent.agent_id), context.task_id, content, fraction))

        context.progress = progress  # type: ignore[method-assign]
        return agent.arguments(task, context)

    copy = agent.with_card()
    copy.arguments = arguments  # type: ignore[method-assign]
    return copy


def _order_of(goal: str | GoalOrder) -> GoalOrder:
    return parse_goal(goal.encode()) if isinstance(goal, str) else goal


def _mind(brain: Brain | None, model: ChatModel | None) -> Mind:
    if brain is not None and model is not None:
        raise InvalidInputError("Both a brain and a model are given.", hint="A model is a brain's; give one of them.")
    if model is not None:
        return mind_of(model, budget=Budget(decision_timeout=_MODEL_PATIENCE))
    return Mind(brain or RuleBrain())


def _refuse_twice(agent_ids: Sequence[str]) -> None:
    if twice := [agent_id for agent_id, number in Counter(agent_ids).items() if number > 1]:
        raise InvalidInputError(f"There are two agents called {', '.join(twice)}.", hint="Each agent id is one agent.")
