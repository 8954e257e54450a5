"""A group stays with the router that appended last, which has its head in memory, for as long as that router answers."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field

from nats.aio.client import Client

from ioa.adapters.nats.delivery.nats_delivery import NatsInboxes
from ioa.adapters.nats.nats_agent_network import NatsAgentNetwork
from ioa.adapters.nats.requests.service import ServiceEndpoint, open_service
from ioa.adapters.nats.wire.connection import NatsSettings, open_connection
from ioa.group.events import Entry, Said, encode_entry
from ioa.group.requests import Accepted, SayReply, SequencedEntry
from ioa.protocol import subjects
from ioa.protocol.codec import encode
from ioa.protocol.ids import AgentId
from tests.contract.control_plane.conftest import heard
from tests.unit.group.scenario import Scenario, launched

ADA, NONCE = AgentId("ada"), "n1"


@dataclass
class Listener:
    """A router that only notes what it is asked."""

    name: str
    inboxes: NatsInboxes
    asked: list[str] = field(default_factory=list)

    async def say(self, subject: str, _data: bytes) -> bytes:
        """Accept."""
        self.asked.append(subject)
        return encode(SayReply(answer=Accepted(seq=1)))

    async def push(self, story: Scenario) -> None:
        """Show Ada where the group stands."""
        entry = encode_entry(Entry(event=story.log[-1], state=story.state, audience=(ADA,)))
        await self.inboxes.push((ADA,), entry, seq=7, previous_seq=3)


@asynccontextmanager
async def listening(url: str, name: str) -> AsyncIterator[Listener]:
    """One replica of the router, on a connection of its own."""
    async with open_connection(NatsSettings(url, name)) as client:
        router = Listener(name, NatsInboxes(client, lambda _: NONCE, name))
        endpoints = [
            ServiceEndpoint("say", subjects.ANY_SAY, router.say),
            ServiceEndpoint("me", subjects.any_say_to(name), router.say),
        ]
        async with open_service(client, "ioa-router", "Listens", "0.1.0", endpoints):
            await heard(client)
            yield router


STORY = launched("ada", "bob").says("ada", to="bob")
MESSAGE = next(event.message for event in STORY.log if isinstance(event, Said))
ALL_PEOPLE, BY_NAME = "ioa.v1.agent.ada.ada.say.room", "ioa.v1.agent.ada.ada.say.room.router-2"


async def test_the_router_that_pushed_last_is_asked(client: Client, nats_url: str) -> None:
    """At first any router is asked; once one has pushed, that one is, every time."""
    network, inbox = NatsAgentNetwork(client), asyncio.Queue[SequencedEntry]()
    async with AsyncExitStack() as stack:
        first, second = [await stack.enter_async_context(listening(nats_url, name)) for name in ("router-1", "router-2")]
        await stack.enter_async_context(network.inbox(ADA, inbox.put_nowait))
        await network.listen(ADA, NONCE)
        await heard(client)
        await network.say(MESSAGE)
        assert sorted(first.asked + second.asked) == [ALL_PEOPLE]
        await second.push(STORY)
        await inbox.get()
        for _ in range(5):
            await network.say(MESSAGE)
    assert [subject for subject in first.asked + second.asked if subject != ALL_PEOPLE] == [BY_NAME] * 5


async def test_any_router_is_asked_when_that_one_is_gone(client: Client, nats_url: str) -> None:
    """What a router that has gone cannot answer is answered by another one within the same call."""
    network, inbox = NatsAgentNetwork(client), asyncio.Queue[SequencedEntry]()
    async with listening(nats_url, "router-1") as first, network.inbox(ADA, inbox.put_nowait):
        await network.listen(ADA, NONCE)
        async with listening(nats_url, "router-2") as second:
            await heard(client)
            await second.push(STORY)
            await inbox.get()
        assert await network.say(MESSAGE) == Accepted(seq=1)
        assert first.asked == [ALL_PEOPLE]
