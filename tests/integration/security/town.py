"""A secured system with agents that a test speaks for, each with its own key, and two users."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from nats.aio.client import Client

from ioa.adapters.nats.nats_agent_network import NatsAgentNetwork
from ioa.adapters.nats.requests.request import NatsRequester
from ioa.client.client import Client as SystemClient
from ioa.client.client import open_system
from ioa.concurrency import beside
from ioa.errors import IoaError, UnavailableError
from ioa.group.requests import Accepted, LaunchGroup, Sync
from ioa.group.state import GroupState
from ioa.protocol.cards import AgentCard
from ioa.protocol.goal_order import GoalOrder
from ioa.protocol.goals import Reason
from ioa.protocol.ids import AgentId, GoalId, GoalName, MessageId, PoolId, SessionId, UserId
from ioa.protocol.messages import ConcludeGroupDiscussion, Conclusion, Header, Message, Phase
from ioa.protocol.registry import Register, Renew, Session
from ioa.retry import until_available
from ioa.testing.manual_clock import NEW_YEAR
from tests.integration.security.secured import Secured, open_intruder, open_secured
from tests.rig.deadline import eventually
from tests.rig.given_goals import GivenGoals

BOB, MALLORY = AgentId("bob"), AgentId("mallory")
SOON = timedelta(seconds=30)
USER, EVE = UserId("user"), UserId("eve")


class Agent:
    """An agent by hand, with its own key: it takes goals, and says what the test has it say."""

    def __init__(self, client: Client, agent_id: AgentId) -> None:
        self.client, self.agent_id = client, agent_id
        self.network, self.requester, self.given = NatsAgentNetwork(client), NatsRequester(client), GivenGoals()
        self.nonce = ""
        self.session = Session(session=SessionId(f"{agent_id}-1"), host="box", pid=7, since=NEW_YEAR)

    async def join(self) -> None:
        """Register, as soon as somebody answers."""

        async def once() -> str:
            try:
                request = Register(card=card(self.agent_id, pool=self.agent_id), session=self.session)
                return (await self.network.register(request)).inbox
            except UnavailableError:
                return ""

        self.nonce = await eventually(once, within=SOON)

    async def lead(self, goal_id: GoalId, content: str, user: UserId = USER) -> None:
        """Open the group of a goal that was given to this agent, and conclude it."""
        ticket = self.given.ticket_of(goal_id, user)
        request = LaunchGroup(
            owner=self.agent_id, members=(), goal_id=goal_id, user=user, session=self.session.session, ticket=ticket
        )
        state = (await until_available(lambda: self.network.launch(request), _try_again)).state
        state = await self.say(state, ConcludeGroupDiscussion(), 0)
        await self.say(state, Conclusion(content=content), 1)

    async def say(self, state: GroupState, payload: ConcludeGroupDiscussion | Conclusion, number: int) -> GroupState:
        """Say something, and return what it led to."""
        header = Header(
            message_id=MessageId(f"{state.comm_id}-{number}"),
            comm_id=state.comm_id,
            sender=self.agent_id,
            state=Phase.DISCUSSING,
            turn=state.turn,
            after=0,
            sent_at=NEW_YEAR,
            session=self.session.session,
        )
        answer = await until_available(lambda: self.network.say(Message(header=header, payload=payload)), _try_again)
        assert isinstance(answer, Accepted), answer
        if answer.entry is not None:
            return answer.entry.entry.state
        # It was said before, and the answer was lost.
        request = Sync(agent_id=self.agent_id, comm_id=state.comm_id, after=0, session=self.session.session)
        return (await until_available(lambda: self.network.sync(request), _try_again)).entries[-1].entry.state


def _try_again(_error: UnavailableError) -> None:
    """Say it again, as agents do."""


@dataclass(frozen=True)
class Town:
    """A system, its user `USER`, and agents by their names; bob leads what this user asks for."""

    secured: Secured
    user: SystemClient
    agents: Mapping[AgentId, Agent]

    async def given(self, *goals: tuple[UserId, GoalId], within: timedelta = SOON) -> None:
        """Wait until bob has been given these goals."""
        names = {GoalName(user, goal_id) for user, goal_id in goals}
        await eventually(lambda: names <= self.agents[BOB].given.names, within=within)

    async def ask_for(self, *goals: str, within: timedelta = SOON) -> list[GoalId]:
        """Launch goals for bob and wait until he has been given them: from then on anybody may know their ids."""
        launched = [await self.user.submit(GoalOrder(goal=goal, agent=BOB)) for goal in goals]
        await self.given(*((USER, goal_id) for goal_id in launched), within=within)
        return launched

    async def outcome(self, goal_id: GoalId) -> tuple[Reason, str]:
        """How a goal ended."""
        async with asyncio.timeout(SOON.total_seconds()):
            result = await self.user.wait_for_result(goal_id)
        return result.reason, result.content

    async def lead_one(self, goal: str = "Count to ten.", *, within: timedelta = SOON) -> float:
        """Have bob lead a goal, and return how many seconds that took."""
        started = time.perf_counter()
        [goal_id] = await self.ask_for(goal, within=within)
        await self.agents[BOB].lead(goal_id, "Ten.")
        assert await self.outcome(goal_id) == (Reason.CONCLUDED, "Ten.")
        return time.perf_counter() - started


@asynccontextmanager
async def _open_agent(secured: Secured, agent_id: AgentId) -> AsyncIterator[Agent]:
    async with open_intruder(secured, agent_id, agent_id) as client:
        agent = Agent(client, agent_id)
        await agent.join()
        taking = agent.network.take_goals(agent_id, PoolId(agent_id), agent.given, max_concurrent=8, anybodys=False)
        async with beside(taking):
            yield agent


@asynccontextmanager
async def open_town(folder: Path, agents: Sequence[AgentId]) -> AsyncIterator[Town]:
    """Run a nats-server with credentials, and all that `open_town_on` runs."""
    async with open_secured(folder, agents) as secured, open_town_on(secured, agents) as town:
        yield town


@asynccontextmanager
async def open_town_on(secured: Secured, agents: Sequence[AgentId]) -> AsyncIterator[Town]:
    """Run the control plane without discovery, which nobody here needs, as processes with seeds of their own."""
    async with AsyncExitStack() as stack:
        secured.logs.mkdir(parents=True, exist_ok=True)
        for name in ("registry", "groups", "router"):
            process = await secured.fork_server.start(secured.service(name))
            stack.push_async_callback(process.stop, 15.0)
        user = await stack.enter_async_context(open_system(secured.settings("user"), patience=SOON))
        present = {agent_id: await stack.enter_async_context(_open_agent(secured, agent_id)) for agent_id in agents}

        async def online() -> set[str]:
            try:
                return {status.card.agent_id for status in await user.agents(online_only=True)}
            except UnavailableError:
                return set()

        async def takes_files() -> bool:
            try:
                return bool(await user.stored())
            except UnavailableError:
                return False

        await eventually(online, set(agents).issubset, within=SOON)
        await eventually(takes_files, within=SOON)
        await stack.enter_async_context(beside(_stay_online(present.values())))
        yield Town(secured, user, present)


async def _stay_online(agents: Collection[Agent]) -> None:
    """Have agents stay for longer than a lease."""
    while True:
        for agent in agents:
            renewal = Renew(agent_id=agent.agent_id, pool=PoolId(agent.agent_id), session=agent.session.session)
            with suppress(IoaError):
                await agent.network.renew(renewal)
        await asyncio.sleep(2.0)


def card(agent_id: AgentId, pool: str) -> AgentCard:
    """A card of an agent that counts."""
    return AgentCard(agent_id=agent_id, name=agent_id, description="Counts things.", pool=PoolId(pool))
