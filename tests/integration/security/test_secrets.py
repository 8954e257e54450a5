"""What one agent's credential can read of a team in which not all hear all: all bytes that reach it are searched."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from nats.aio.client import Client

from ioa import Agent, TaskContext, TurnView
from ioa.adapters.nats.nats_agent_network import NatsAgentNetwork
from ioa.adapters.nats.system_client import NatsSystemClient
from ioa.adapters.nats.wire.message_parser import MessageParser
from ioa.adapters.sqlite_store import open_sqlite_store
from ioa.adapters.system_clock import RandomIds, SystemClock
from ioa.adapters.this_process import new_session
from ioa.agent.agent_ports import AgentPorts
from ioa.agent.agent_runtime import AgentRuntime, RuntimeOptions
from ioa.agent.rules import RuleBrain
from ioa.agent.turn_view import Said
from ioa.client.client import Client as UserClient
from ioa.client.client import open_system
from ioa.client.seat import PersonReply, PersonSeat
from ioa.concurrency import beside
from ioa.errors import IoaError
from ioa.group.requests import ListMemberships, Rejected, Sync
from ioa.protocol.goal_order import GoalOrder
from ioa.protocol.goals import Reason
from ioa.protocol.ids import AgentId, CommId, MessageId, SessionId, TaskId, UserId, comm_id_of_goal
from ioa.protocol.messages import Discussion, Header, InformTaskProgress, Message, Phase
from ioa.protocol.teams.team_file import team_of
from ioa.runtime.process import StopSignal
from ioa.testing.manual_clock import NEW_YEAR
from tests.integration.security.secured import Secured, open_intruder, open_secured
from tests.rig.deadline import eventually

SOON = timedelta(seconds=30)
CHAIR, ADA, BEN, MALLORY, BOSS = map(AgentId, ("chair", "ada", "ben", "mallory", "human-boss"))
TEAM: Mapping[str, Any] = {
    "team": "secrets",
    "leader": "chair",
    "roles": {
        "chair": {"agent": "chair", "hears_all": True},
        "red": {"agents": ["ada", "ben"], "secret": True, "prompt": "canary-prompt"},
        "guest": "mallory",
        "boss": {"human": True},
    },
    "nodes": [
        {"name": "talk", "roles": ["guest"], "then": "draft"},
        {"name": "draft", "roles": ["red"], "review": "chair", "guards": [{"without": ["canary-guard"]}], "max": 1, "then": "plan"},
        {
            "name": "plan",
            "roles": ["red"],
            "heard_by": "red",
            "prompt": "canary-node",
            "opens": {"role": "red", "say": "canary-opening"},
            "form": {"note": "no|yes", "why": "text"},
            "max": 3,
            "asked": "turn",
            "exits": [{"to": "ask", "when": {"field": "note", "equals": "no"}}, {"to": "ask", "by": "chair"}, {"to": "ask"}],
        },
        {"name": "ask", "roles": ["red"], "heard_by": "red", "asks": True, "max": 1, "then": "work"},
        {"name": "work", "roles": ["red"], "heard_by": "red", "tasks": True, "max": 1, "then": "vote"},
        {"name": "vote", "roles": ["red", "guest"], "turns": {"mode": "together", "peers": "never"}, "then": "close"},
        {"name": "close", "roles": ["guest"], "then": "sign"},
        {"name": "sign", "roles": ["boss"]},
    ],
}
_SAID = ("prompt", "node", "opening", "words", "field", "why", "aside", "draft", "reason")
_ASKED = ("question", "option", "default", "answer")
_TASKS = ("given", "task", "progress", "inquiry", "result", "file")
CANARIES = tuple([f"canary-{what}".encode() for what in (*_SAID, *_ASKED, *_TASKS)])


def player(name: str) -> Agent:
    """An agent that tells a canary wherever mallory does not hear it."""
    agent = Agent(name, description=f"Plays {name}.")

    @agent.task
    async def work(task: str, ctx: TaskContext) -> str:
        ctx.progress("canary-progress")
        ctx.artifact("canary-file.txt", "Nothing.")
        await ctx.ask("canary-inquiry", default="canary-default", within=timedelta(seconds=1))
        return "canary-result"

    @agent.speak
    def speak(view: TurnView) -> Said:
        assert view.offer is not None
        if view.offer.concluding:
            return view.conclude("Done.")
        if view.offer.about == "review":
            is_first = view.conversation[-1].content == "canary-draft"
            return view.decide("reject", "canary-reason") if is_first else view.decide("pass")
        if view.offer.options:
            return view.decide("stay", "canary-why")
        if view.offer.reviewed:
            is_anew = view.conversation[-1].why == "canary-reason"
            return view.say("Nothing." if is_anew else "canary-draft")
        if view.offer.tasks and not view.tasks:
            others = [one.agent_id for one in view.team if one.agent_id in (ADA, BEN)]
            return view.assign({others[0]: "canary-task"}, say="canary-given")
        if view.offer.asks:
            options = ("canary-option", "canary-default", "canary-answer")
            has_asked = view.conversation[-1].kind == "answer"
            return view.say("Well.") if has_asked else view.ask("canary-question", options=options, default=options[1])
        if view.offer.form:
            return view.say("canary-words", fields={"note": "yes", "why": "canary-field"})
        return view.say("Nothing." if name == MALLORY else "canary-aside")

    return agent


@asynccontextmanager
async def playing(secured: Secured, folder: Path, name: AgentId) -> AsyncIterator[tuple[Client, SessionId]]:
    """Serve an agent by its own key and memory."""
    agent, clock, ids = player(name), SystemClock(), RandomIds()
    options = RuntimeOptions(folder / name, drain=timedelta(0), takeover=timedelta(0))
    stop, session = StopSignal(), new_session(clock, ids)
    async with open_intruder(secured, name, name) as client, open_sqlite_store(folder / f"{name}.db") as store:
        ports = AgentPorts(NatsAgentNetwork(client), store, clock, ids, RuleBrain())
        served = AgentRuntime(agent, agent.card_as(name), ports, session, options)
        async with beside(served.run(stop), stop=stop.set):
            yield client, session.session


async def probe(client: Client, session: SessionId, comm_id: CommId) -> None:
    """Ask for all that a member may ask for, and be refused in every way."""
    network = NatsAgentNetwork(client)
    page = await network.sync(Sync(comm_id=comm_id, agent_id=MALLORY, session=session))
    await network.sync(Sync(comm_id=comm_id, agent_id=MALLORY, after=page.head, session=session))
    await network.memberships(ListMemberships(agent_id=MALLORY))
    for number, payload in enumerate((Discussion(content="Me."), InformTaskProgress(task_id=TaskId("t1-1"), number=1))):
        about = {
            "comm_id": comm_id,
            "sender": MALLORY,
            "state": Phase.DISCUSSING,
            "after": 0,
            "sent_at": NEW_YEAR,
            "session": session,
        }
        header = Header.model_validate({**about, "message_id": MessageId(f"probe-{number}-{page.head}"), "turn": 900 + number})
        answer = await network.say(Message(header=header, payload=payload))
        assert isinstance(answer, Rejected), answer


async def signing(client: Client) -> None:
    """Be the person, and answer what it is asked."""
    seat = PersonSeat(NatsAgentNetwork(client), "boss", SystemClock())
    while True:
        with suppress(IoaError):
            async for one in seat.awaited():
                await seat.answer(one.item, PersonReply("Signed."))
        await asyncio.sleep(0.05)


async def answering(user: UserClient) -> None:
    """Be the user of the goal, and answer what the group asks."""
    while True:
        with suppress(IoaError):
            for one in await user.waiting():
                await user.answer(one.item, "canary-answer")
        await asyncio.sleep(0.05)


async def probing(client: Client, session: SessionId, comm_id: CommId) -> None:
    """Do so again and again while the group is there."""
    while True:
        with suppress(IoaError):
            await probe(client, session, comm_id)


async def test_a_key_reads_nothing_that_its_agent_does_not_hear(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not in pushes, answers, refusals or pages, and not in the agent's file; who hears all reads all of it."""
    members = (CHAIR, ADA, BEN, MALLORY)
    arrived: defaultdict[Client, bytearray] = defaultdict(bytearray)
    parse = MessageParser.parse

    async def tapped(self: MessageParser, data: bytes) -> None:
        arrived[self.nc].extend(data)
        await parse(self, data)

    monkeypatch.setattr(MessageParser, "parse", tapped)
    async with AsyncExitStack() as stack:
        secured = await stack.enter_async_context(open_secured(tmp_path, (*members, BOSS)))
        (tmp_path / "logs").mkdir()
        for service in ("registry", "groups", "router"):
            process = await secured.fork_server.start(secured.service(service))
            stack.push_async_callback(process.stop, 15.0)
        user = await stack.enter_async_context(open_system(secured.settings("user"), patience=SOON))
        clients = {name: await stack.enter_async_context(playing(secured, tmp_path, name)) for name in members}
        await eventually(lambda: online(user), set(clients).issubset, within=SOON)
        boss = await stack.enter_async_context(open_intruder(secured, BOSS, BOSS))
        goal_id = await user.submit(GoalOrder(goal="Play.", team=team_of(TEAM)))
        comm_id = comm_id_of_goal(goal_id, UserId("user"))
        async with beside(probing(*clients[MALLORY], comm_id), signing(boss), answering(user)):
            result = await user.wait_for_result(goal_id)
        assert result.reason is Reason.CONCLUDED, result
        await probe(*clients[MALLORY], comm_id)
        read = {name: bytes(arrived[client]) for name, (client, _) in clients.items()} | {BOSS: bytes(arrived[boss])}
    found = {name: [one for one in CANARIES if one in data] for name, data in read.items()}
    kept = await asyncio.to_thread(files_of, tmp_path, MALLORY)
    assert (found[MALLORY], [one for one in CANARIES if one in kept]) == ([], [])
    assert found[BOSS] == [b"canary-aside"]  # who speaks in another node hears what those in this one do not hear of each other
    entered = [one for one in CANARIES if one != b"canary-progress"]  # that is told to who follows the goal, and to no member
    assert found[CHAIR] == entered
    red = {*found[ADA], *found[BEN]}  # a draft hears who wrote it, which is the one of them whom the hash of the group puts first
    assert red == {one for one in entered if one != b"canary-why"}


def files_of(folder: Path, name: AgentId) -> bytes:
    """All that an agent's memory holds on disk."""
    return b"".join(file.read_bytes() for file in folder.glob(f"{name}.db*"))


async def online(user: NatsSystemClient) -> set[str]:
    """Who has registered."""
    try:
        return {status.card.agent_id for status in await user.agents(online_only=True)}
    except IoaError:
        return set()
