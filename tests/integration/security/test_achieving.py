"""What a stranger's key achieves: one ordinary agent means harm, while honest agents lead goals on the same system."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import pytest
from nats.aio.client import Client
from nats.aio.msg import Msg

from ioa.adapters.nats.agent_network import NatsAgentNetwork
from ioa.adapters.nats.connection import open_connection
from ioa.adapters.nats.goals import TICKET
from ioa.adapters.nats.keys import stream_of
from ioa.adapters.nats.request_reply import NatsRequester
from ioa.adapters.nats.system_client import NatsSystemClient, open_system
from ioa.adapters.nats.topology import ANY_AGENT, CARDS, DEAD, GOALS, LOG, RESULTS, WORK
from ioa.beside import beside
from ioa.errors import ForbiddenError, NotFoundError, UnavailableError
from ioa.group.requests import AbandonGoal, Accepted, LaunchGroup
from ioa.group.state import GroupState
from ioa.protocol import subjects
from ioa.protocol.cards import AgentCard, AgentStatus
from ioa.protocol.goal_order import GoalOrder
from ioa.protocol.goals import Reason
from ioa.protocol.ids import AgentId, GoalId, MessageId, PoolId, SessionId, comm_id_of_goal
from ioa.protocol.load import MAX_SLOTS, Load
from ioa.protocol.messages import ConcludeGroupDiscussion, Conclusion, Header, Message, Phase
from ioa.protocol.registry import Lease, Register, Renew, Session
from ioa.testing.manual_clock import NEW_YEAR
from ioa_testkit.given_goals import GivenGoals
from tests.integration.security.secured import Secured, open_intruder, open_secured
from tests.rig.deadline import eventually

BOB, MALLORY = AgentId("bob"), AgentId("mallory")
_SOON = timedelta(seconds=30)
_BRIEFLY = timedelta(milliseconds=300)


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
                request = Register(card=_card(self.agent_id, pool=self.agent_id), session=self.session)
                return (await self.network.register(request)).inbox
            except UnavailableError:
                return ""

        self.nonce = await eventually(once, within=_SOON)

    async def lead(self, goal_id: GoalId, content: str) -> None:
        """Open the group of a goal that was given to this agent, and conclude it."""
        ticket = self.given.ticket_of(goal_id)
        request = LaunchGroup(owner=self.agent_id, members=(), goal_id=goal_id, session=self.session.session, ticket=ticket)
        state = (await self.network.launch(request)).state
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
        answer = await self.network.say(Message(header=header, payload=payload))
        assert isinstance(answer, Accepted) and answer.entry is not None, answer
        return answer.entry.entry.state


@dataclass(frozen=True)
class Town:
    """A system with a user, bob, who is honest, and mallory, who is not."""

    secured: Secured
    user: NatsSystemClient
    bob: Agent
    mallory: Agent

    async def ask_for(self, *goals: str) -> list[GoalId]:
        """Launch goals for bob and wait until he has been given them: from then on anybody may know their ids."""
        launched = [await self.user.launch(GoalOrder(goal=goal, agent=BOB)) for goal in goals]
        await eventually(lambda: all(is_given(self.bob.given, goal_id) for goal_id in launched), within=_SOON)
        return launched

    async def outcome(self, goal_id: GoalId) -> tuple[Reason, str]:
        """How a goal ended."""
        async with asyncio.timeout(_SOON.total_seconds()):
            result = await self.user.wait_for_result(goal_id)
        return result.reason, result.content


def is_given(given: GivenGoals, goal_id: GoalId) -> bool:
    """Whether an agent was given a goal."""
    try:
        return bool(given.ticket_of(goal_id))
    except NotFoundError:
        return False


@asynccontextmanager
async def _open_agent(secured: Secured, agent_id: AgentId) -> AsyncIterator[Agent]:
    async with open_intruder(secured, agent_id, agent_id) as client:
        agent = Agent(client, agent_id)
        await agent.join()
        taking = agent.network.take_goals(agent_id, PoolId(agent_id), agent.given, max_concurrent=8, anybodys=False)
        async with beside(taking):
            yield agent


@pytest.fixture
async def town(tmp_path: Path) -> AsyncIterator[Town]:
    """The control plane without discovery, which nobody here needs, as processes with seeds of their own."""
    async with AsyncExitStack() as stack:
        secured = await stack.enter_async_context(open_secured(tmp_path, (BOB, MALLORY)))
        (tmp_path / "logs").mkdir()
        for name in ("registry", "groups", "router"):
            process = await secured.fork_server.start(secured.service(name))
            stack.push_async_callback(process.stop, 15.0)
        user = await stack.enter_async_context(open_system(secured.settings("user"), patience=_SOON))
        bob = await stack.enter_async_context(_open_agent(secured, BOB))
        mallory = await stack.enter_async_context(_open_agent(secured, MALLORY))

        async def online() -> set[str]:
            try:
                return {status.card.agent_id for status in await user.agents(online_only=True)}
            except UnavailableError:
                return set()

        await eventually(online, {BOB, MALLORY}.issubset, within=_SOON)
        yield Town(secured, user, bob, mallory)


async def test_a_stranger_achieves_nothing_beyond_its_own_part(town: Town) -> None:
    """With one ordinary key nobody takes, ends or answers another's goal, draws its work, or reaches it by a forged reply."""
    goals = await town.ask_for("Count to ten.", "Count to eleven.")
    achieved = [*await _theft(town, goals), *await _foreign_pool(town), *await _forged_replies(town, goals)]
    for number, goal_id in enumerate(goals):
        await town.bob.lead(goal_id, f"{number}, says bob.")
    outcomes = [await town.outcome(goal_id) for goal_id in goals]
    assert achieved == []
    assert outcomes == [(Reason.CONCLUDED, f"{number}, says bob.") for number in range(2)]


async def _theft(town: Town, goals: Sequence[GoalId]) -> list[str]:
    """T1: launch or abandon goals whose ids are known."""
    achieved, network, session = [], town.mallory.network, town.mallory.session.session
    for goal_id, ticket in itertools.product(goals, (None, "0" * 32)):
        launch = LaunchGroup(owner=MALLORY, members=(), goal_id=goal_id, session=session, ticket=ticket)
        end = AbandonGoal(goal_id=goal_id, by=MALLORY, reason=Reason.FAILED, content="No.", session=session, ticket=ticket)
        for name, attempt in (("launched", network.launch(launch)), ("abandoned", network.abandon(end))):
            try:
                await attempt
                achieved.append(f"{name} {goal_id}")
            except ForbiddenError:
                pass
    return achieved


async def _foreign_pool(town: Town) -> list[str]:
    """T10: say that one is of another's pool, and idle beyond belief."""
    mallory, achieved = town.mallory, []
    register = Register(card=_card(MALLORY, pool=BOB), session=mallory.session)
    for subject in (subjects.register(PoolId(BOB), MALLORY), subjects.register(PoolId(MALLORY), MALLORY)):
        try:
            await mallory.requester.request(subject, register, Lease, timeout=_BRIEFLY)
            achieved.append(f"registered on {subject}")
        except (ForbiddenError, UnavailableError):
            pass
    await mallory.network.renew(Renew(agent_id=MALLORY, session=mallory.session.session, load=_IDLE_BEYOND_BELIEF))

    async def told() -> list[AgentStatus]:
        agents = await town.user.agents()
        return [status for status in agents if status.load.slots > 1]

    slots = [status.load.slots for status in await eventually(told, within=_SOON)]
    pools = {status.card.agent_id: status.card.pool for status in await town.user.agents()}
    achieved += [f"claimed {number} slots" for number in slots if number > MAX_SLOTS]
    return achieved + ([] if pools == {BOB: PoolId(BOB), MALLORY: PoolId(MALLORY)} else [f"pools are {pools}"])


async def _forged_replies(town: Town, goals: Sequence[GoalId]) -> list[str]:
    """T6: have the server's answers sent where goals, cancellations, pushes, results and logs are read."""
    client, room = town.mallory.client, comm_id_of_goal(goals[0])
    anybodys = await town.user.launch(GoalOrder(goal="Count to twelve."))
    heard: list[str] = []

    async def note(message: Msg) -> None:
        heard.append(f"{message.subject} heard an answer")

    await town.bob.client.subscribe(subjects.inbox(BOB, town.bob.nonce), cb=note)
    targets = [subjects.GOAL, subjects.goal_to(BOB), subjects.CANCEL, f"ioa.v1.inbox.{BOB}", subjects.inbox(BOB, "0" * 32)]
    targets += [subjects.log(room), subjects.result_of(goals[0]), subjects.dead("unreadable"), f"$KV.{CARDS}.{BOB}"]
    async with open_connection(town.secured.settings("admin")) as admin:
        js = admin.jetstream()

        async def kept() -> dict[str, int]:
            return {
                stream: (await js.stream_info(stream)).state.last_seq for stream in (GOALS, DEAD, LOG, RESULTS, stream_of(CARDS))
            }

        await eventually(lambda: js.consumer_info(WORK, ANY_AGENT), lambda queue: queue.num_pending == 1, within=_SOON)
        before = await kept()
        for target in targets:
            await client.publish(subjects.sync(MALLORY), b"", reply=target)
        # What waits for anybody is msgpack, and names a goal just as a cancellation does.
        await client.publish(f"$JS.API.CONSUMER.MSG.NEXT.{WORK}.{ANY_AGENT}", b'{"batch":1,"no_wait":true}', reply=subjects.CANCEL)
        queue = await client.jetstream().pull_subscribe_bind(ANY_AGENT, WORK)
        [given] = await queue.fetch(1, timeout=_SOON.total_seconds())
        with pytest.raises(NotFoundError):  # group setup answers in turn: whatever was sent before has been looked at
            await town.user.group(room)
        after = await kept()
    assert TICKET in (given.headers or {}), "what waits for anybody is anybody's, by asking as itself"
    achieved = [f"{stream} took {after[stream] - before[stream]} answers" for stream in before if before[stream] != after[stream]]
    return achieved + heard + ([] if await town.user.result(anybodys) is None else ["cancelled a goal"])


def _card(agent_id: AgentId, pool: str) -> AgentCard:
    return AgentCard(agent_id=agent_id, name=agent_id, description="Counts things.", pool=PoolId(pool))


_IDLE_BEYOND_BELIEF = Load.model_construct(tasks=0, groups=0, slots=10_000)
