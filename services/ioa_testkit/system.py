"""A whole system in a test: the author's agents and the real services in the test's event loop."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

from ioa.adapters.system_clock import RandomIds, SystemClock
from ioa.agent.brain_port import Brain
from ioa.agent.definition import AgentDefinition
from ioa.client.history import conversation
from ioa.client.seat import PersonSeat
from ioa.client.watching import watch
from ioa.concurrency import fail_after
from ioa.hosting.brains import open_minds
from ioa.hosting.host import Crew, check_distinct, host, runtime_options
from ioa.hosting.settings import WorkerSettings
from ioa.ports.chat_model import ChatModel
from ioa.protocol.goal_order import GoalOrder
from ioa.telemetry.logs import handed_to_logging
from ioa_testkit.finished import FinishedGoal, News, transcript_of
from ioa_testkit.planes import Plane, open_nats_plane, until_ready

_REFORM_AFTER = timedelta(milliseconds=200)
_MODEL_SETTINGS = {"IOA_LLM_PATIENCE": "2"}
"""Timeout of a model's decision in seconds; the plane has the same timeout for goals and groups that wait for a model."""


class RunningSystem:
    """A system with agents that serve in it.

    Attributes:
        client: The client of a user.
    """

    def __init__(self, plane: Plane, within: timedelta) -> None:
        self.client = plane.client
        self._network = plane.network
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
            AssertionError: The goal has no result in time; the error contains the transcript so far.
            InvalidInputError: The goal is invalid, or a file cannot be read.
        """
        news = list[News]()
        try:
            async with fail_after(self._within.total_seconds()):
                name = (await self.client.launch(goal, files)).name
                async with watch(self.client, name.comm_id) as coming:
                    async for one in coming:
                        news.append(one)  # also for the error
                result = await self.client.wait_for_result(name)
        except TimeoutError:
            told = f"The goal {goal!r} has no result after {self._within.total_seconds():g} s. Does an agent hang?"
            hint = "Its captured log may say why; ioa_system.within gives it more time."
            raise AssertionError(f"{told} {hint}\nSo far in the group:\n{transcript_of(news)}") from None
        produced = {artifact.name: await self.client.fetch(artifact) for artifact in result.artifacts}
        return FinishedGoal(result, produced, await conversation(self.client, name.comm_id), transcript_of(news))


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
            AssertionError: The goal has no result in time; the error contains the transcript so far.
            InvalidInputError: The goal or an agent is invalid, or a file cannot be read.
        """
        async with self.serve(*agents, brain=brain, model=model) as running:
            return await running.run(goal, files=files)

    @asynccontextmanager
    async def serve(
        self, *agents: AgentDefinition, brain: Brain | None = None, model: ChatModel | None = None
    ) -> AsyncIterator[RunningSystem]:
        """Serve agents while the block runs, for tests with several goals. They use the brain or the model if they have none."""
        check_distinct([agent.agent_id for agent in agents])
        agents = tuple([agent.with_card(brain=agent.brain or brain, model=agent.model or model) for agent in agents])
        hosted = [host(agent) for agent in agents]
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
                    await until_ready(plane.inspection, len(agents), self.within)
                    yield RunningSystem(plane, self.within)
