"""Agents of one process whose language model says the same thing in ever other words, against the real control plane."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta
from itertools import count
from pathlib import Path

from nats.aio.client import Client

from ioa import Agent
from ioa.adapters.nats_agent_network import NatsAgentNetwork
from ioa.adapters.system_clock import RandomIds, SystemClock
from ioa.adapters.this_process import new_session
from ioa.agent.client import AgentClient, ClientOptions
from ioa.agent.model.answers import DoAlone
from ioa.agent.model.brain import ModelBrain
from ioa.agent.rules.brain import RuleBrain
from ioa.group.state import Concluding
from ioa.ports.brain import Alone, Brain, GroupView, Mission, NobodyFits, TaskView, Team, TeamTools, Utterance
from ioa.ports.chat_model import AnswerLimits, ChatMessage, ChatModel
from ioa.protocol.ids import AgentId, TaskId
from ioa.protocol.messages import AsyncTaskAssignment, Conclusion, Discussion, TaskSpec
from ioa.testing.memory_store import MemoryStore
from ioa.testing.scripted_model import Asked, ScriptedModel

BOSS, BOB, EVE = AgentId("boss"), AgentId("bob"), AgentId("eve")
TEAM = (BOSS, BOB, EVE)
TASK = TaskSpec(task_id=TaskId("t1-1"), assignee=EVE, task_desc="List the regions in the file.")
ONE_THING = (
    "I suggest that Bob computes the totals per region from the sales file, and Eve draws a chart of them.",
    "Great idea! Eve could draw a chart of the totals per region, which Bob calculates from the sales file.",
    "So, just to repeat: the regional chart is drawn by Eve, and from the sales file Bob computes totals per region.",
    "Absolutely. Bob should calculate the total of every region with the sales file, then Eve plots them in a chart.",
    "To put it in other words, a chart of the totals by region is what Eve draws once Bob has computed them from the sales file.",
)
_LIMITS = AnswerLimits(max_tokens=200, timeout=timedelta(seconds=5))


def looping_model() -> ScriptedModel:
    """A model that answers every question with one and the same proposal, in other words each time."""
    turns = count()

    def answer(asked: Asked) -> str:
        listener = re.search(r'"next_speaker": \{[^}]*"enum": \["([^"]+)"', json.dumps(asked.shape.model_json_schema()))
        decision = {
            "type": "DISCUSSION",
            "next_speaker": listener.group(1) if listener else str(EVE),
            "content": ONE_THING[next(turns) % len(ONE_THING)],
        }
        return json.dumps({"thought": "", "decision": decision})

    return ScriptedModel(answer)


class TrustingBrain:
    """Say whatever the model says, as a client of another maker may do; give out one task first if told to."""

    def __init__(self, model: ChatModel, tasks: Sequence[TaskSpec] = ()) -> None:
        self._model = model
        self._tasks = tuple(tasks)

    async def form_team(self, mission: Mission, tools: TeamTools) -> Team | NobodyFits:
        """Take both others."""
        return Team(members=(BOB, EVE))

    async def speak(self, view: GroupView) -> Utterance:
        """Hand the model's words on."""
        if self._tasks and not view.tasks:
            return AsyncTaskAssignment(tasks=self._tasks)
        answer = await self._model.answer([ChatMessage(role="user", content="Speak.")], DoAlone, _LIMITS)
        said = json.loads(answer.text)["decision"]["content"]
        return Discussion(content=said, next_speaker=BOB if view.me == BOSS else BOSS)

    async def conclude(self, view: GroupView) -> Conclusion:
        """Tell what the tasks came to."""
        assert isinstance(view.state.stage, Concluding)
        return Conclusion(content="; ".join(task.conclusion for task in view.tasks) or "We agree.")

    async def approach(self, task: TaskView, tools: TeamTools) -> Alone | Team:
        """Work alone."""
        return Alone(task.spec.task_desc)


class CheckingBrain(ModelBrain):
    """The model's brain as it ships, for a team that needs no discovery."""

    def __init__(self, model: ChatModel) -> None:
        super().__init__(model, RuleBrain())

    async def form_team(self, mission: Mission, tools: TeamTools) -> Team | NobodyFits:
        """Take both others."""
        return Team(members=(BOB, EVE))


class Bench:
    """The tools of the agents: each ends its task when the test lets it."""

    def __init__(self) -> None:
        self.may_end = asyncio.Event()

    def agent(self, agent_id: AgentId) -> Agent:
        """An agent that works until it may end."""
        agent = Agent(agent_id, description=f"{agent_id} computes totals and draws charts.")

        @agent.task
        async def run(task: str) -> str:
            await self.may_end.wait()
            return f"{agent_id}: north, south and west"

        return agent


@asynccontextmanager
async def open_agents(client: Client, brain: Brain, bench: Bench, files: Path) -> AsyncIterator[None]:
    """Run the team in this process."""
    network, clock, ids, leave = NatsAgentNetwork(client), SystemClock(), RandomIds(), asyncio.Event()
    async with asyncio.TaskGroup() as group:
        for agent_id in TEAM:
            agent = bench.agent(agent_id)
            card, session, options = agent.card_as(agent_id), new_session(clock, ids), ClientOptions(files / agent_id)
            agent_client = AgentClient(agent, card, brain, network, MemoryStore(), clock, ids, session, options)
            group.create_task(agent_client.run(_Leaving(leave)))
        try:
            yield
        finally:
            bench.may_end.set()
            leave.set()


class _Leaving:
    def __init__(self, event: asyncio.Event) -> None:
        self._event = event

    async def wait(self) -> None:
        await self._event.wait()
