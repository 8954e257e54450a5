"""What cards, leases, memberships and their live views promise."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine
from datetime import timedelta
from functools import partial
from typing import Any, Protocol

import pytest
from nats.aio.client import Client

from ioa.adapters.nats_buckets import NatsCards, NatsLeases, NatsMemberships, NatsRegistryView
from ioa.adapters.nats_server import NatsServer
from ioa.adapters.nats_topology import LEASES
from ioa.ports.delivery import MembershipChanges, Memberships
from ioa.ports.registry_store import CardRecord, CardStore, LeaseStore, RegistryView
from ioa.protocol.ids import AgentId, CommId
from ioa.protocol.load import IDLE, Load
from ioa.runtime.process import background
from ioa.testing.deadline import eventually
from ioa.testing.manual_clock import ManualClock
from ioa.testing.memory_registry import MemoryCards, MemoryLeases, MemoryMemberships, MemoryRegistryView
from ioa.testing.nats_server import crash
from tests.contract.control_plane.conftest import LEASE
from tests.unit.group.scenario import START, card

ADA, BOB = AgentId("ada"), AgentId("bob")
ROOM, OTHER = CommId("room"), CommId("other")


class Rig(Protocol):
    """A registry's stores and views, and a way to let time pass."""

    @property
    def cards(self) -> CardStore:
        """The cards."""

    @property
    def leases(self) -> LeaseStore:
        """The leases."""

    @property
    def view(self) -> RegistryView:
        """The live view of both."""

    @property
    def memberships(self) -> Memberships:
        """Who is in which group."""

    @property
    def changes(self) -> MembershipChanges:
        """The live view of it."""

    async def let_pass(self, time: timedelta) -> None:
        """Let time pass."""


class MemoryRig:
    """Everything in dictionaries."""

    def __init__(self) -> None:
        self._clock = ManualClock()
        self.cards, self.leases = MemoryCards(), MemoryLeases(self._clock, LEASE)
        self.view = MemoryRegistryView(self.cards, self.leases)
        self.memberships = self.changes = MemoryMemberships()

    async def let_pass(self, time: timedelta) -> None:
        """Move the clock."""
        self._clock.advance(time)


class NatsRig:
    """Everything in buckets."""

    def __init__(self, client: Client) -> None:
        self.cards, self.leases, self.view = NatsCards(client), NatsLeases(client), NatsRegistryView(client)
        self.memberships = self.changes = NatsMemberships(client)

    def followers(self) -> tuple[Coroutine[Any, Any, None], ...]:
        """What keeps the views current."""
        return self.view.follow_cards(), self.view.follow_leases(), self.memberships.follow()

    async def let_pass(self, time: timedelta) -> None:
        """Do nothing: time passes by itself while a test waits for what it brings."""

    async def ready(self) -> None:
        """Wait until the views are whole."""
        for event in (self.view.cards_ready, self.view.leases_ready, self.memberships.ready):
            await asyncio.wait_for(event.wait(), 10)


@pytest.fixture
async def rig(client: Client | None) -> AsyncIterator[Rig]:
    """An empty registry."""
    if client is None:
        yield MemoryRig()
        return
    nats = NatsRig(client)
    async with background(*nats.followers()):
        await nats.ready()
        yield nats


def record(agent_id: str, name: str = "") -> CardRecord:
    """A card on record."""
    return CardRecord(card=card(agent_id).model_copy(update={"name": name or agent_id}), registered_at=START)


async def test_nobody_is_known_at_first(rig: Rig) -> None:
    """An empty registry has no cards, and nobody is online or in a group."""
    seen = (
        await rig.cards.get(ADA),
        rig.view.card(ADA),
        list(rig.view.cards()),
        rig.view.is_online(ADA),
        list(rig.changes.agents()),
    )
    assert seen == (None, None, [], False, [])


async def test_a_card_is_read_at_once_and_seen_soon(rig: Rig) -> None:
    """The store answers with what was put; the view follows."""
    await rig.cards.put(record("ada"))
    assert await rig.cards.get(ADA) == record("ada")
    assert await eventually(lambda: rig.view.card(ADA)) == record("ada")


async def test_a_card_is_replaced(rig: Rig) -> None:
    """A card that is put again replaces the one before."""
    await rig.cards.put(record("ada"))
    await rig.cards.put(record("ada", name="Ada II"))
    assert await eventually(lambda: rig.view.card(ADA), lambda seen: seen == record("ada", name="Ada II"))
    assert await rig.cards.get(ADA) == record("ada", name="Ada II")


async def test_cards_are_listed_by_id(rig: Rig) -> None:
    """The view lists cards in the order of their ids, not of their coming."""
    for agent_id in ("bob", "eve", "ada"):
        await rig.cards.put(record(agent_id))
    listed = await eventually(rig.view.cards, lambda seen: len(seen) == 3)
    assert [found.card.agent_id for found in listed] == ["ada", "bob", "eve"]


async def test_a_lease_that_runs_out_takes_its_agent_offline_without_forgetting_it(rig: Rig) -> None:
    """An agent that renews no more is offline after its lease; its card stays, and it may come back."""
    await rig.cards.put(record("ada"))
    await rig.leases.renew(ADA)
    assert await eventually(lambda: rig.view.is_online(ADA) and rig.view.card(ADA) == record("ada"))
    await rig.let_pass(LEASE)
    await eventually(lambda: not rig.view.is_online(ADA))
    assert rig.view.card(ADA) == record("ada")
    await rig.leases.renew(ADA)
    assert await eventually(lambda: rig.view.is_online(ADA))


async def test_a_renewed_lease_outlives_another(rig: Rig) -> None:
    """Renewing keeps one agent online while another's lease runs out."""
    await rig.leases.renew(ADA)
    await rig.leases.renew(BOB)
    await eventually(lambda: rig.view.is_online(BOB))
    while rig.view.is_online(BOB):
        await rig.leases.renew(ADA)
        await rig.let_pass(LEASE / 2)
        await asyncio.sleep(0)
    assert (rig.view.is_online(ADA), rig.view.is_online(BOB)) == (True, False)


async def test_a_lease_tells_how_busy_its_agent_is(rig: Rig) -> None:
    """The view shows the load of the last renewal, and none for a lease that says nothing or is gone."""
    await rig.leases.renew(ADA, Load(tasks=1, groups=1, slots=4))
    await rig.leases.renew(ADA, Load(tasks=3, groups=2, slots=4))
    await rig.leases.renew(BOB)
    assert await eventually(lambda: rig.view.is_online(BOB))
    seen = rig.view.load(ADA), rig.view.load(BOB)
    await rig.leases.release(ADA)
    await eventually(lambda: not rig.view.is_online(ADA))
    assert (*seen, rig.view.load(ADA)) == (Load(tasks=3, groups=2, slots=4), IDLE, IDLE)


async def test_a_lease_whose_load_cannot_be_read_is_a_lease(nats_client: Client) -> None:
    """What another version wrote into a lease, nothing at all included, keeps its agent online and counts as idle."""
    rig = NatsRig(nats_client)
    async with background(rig.view.follow_leases()):
        await asyncio.wait_for(rig.view.leases_ready.wait(), 10)
        bucket = await nats_client.jetstream().key_value(LEASES)
        for agent_id, value in ((ADA, b""), (BOB, b"\xc1 no msgpack")):
            await bucket.put(agent_id, value)
            await eventually(partial(rig.view.is_online, agent_id))
        assert (rig.view.load(ADA), rig.view.load(BOB)) == (IDLE, IDLE)


async def test_a_released_lease_is_gone_at_once(rig: Rig) -> None:
    """An agent that deregisters is offline without waiting; giving back what one has not is no error."""
    await rig.leases.renew(ADA)
    await eventually(lambda: rig.view.is_online(ADA))
    await rig.leases.release(ADA)
    await rig.leases.release(BOB)
    assert await eventually(lambda: not rig.view.is_online(ADA), within=LEASE / 2)


async def test_memberships_are_seen_and_forgotten(rig: Rig) -> None:
    """The view shows who is in which open group, each once, until the membership is removed."""
    await rig.memberships.add((ADA, BOB), ROOM)
    await rig.memberships.add((ADA,), OTHER)
    await rig.memberships.add((ADA,), OTHER)
    await eventually(lambda: list(rig.changes.groups_of(ADA)), lambda seen: seen == [OTHER, ROOM])
    assert list(rig.changes.agents()) == [ADA, BOB]
    await rig.memberships.remove(ADA, ROOM)
    await rig.memberships.remove(BOB, ROOM)
    await rig.memberships.remove(BOB, OTHER)
    await eventually(lambda: list(rig.changes.agents()), lambda seen: seen == [ADA])
    assert list(rig.changes.groups_of(ADA)) == [OTHER]


async def test_a_view_opened_late_sees_everything(nats_client: Client) -> None:
    """A view's first snapshot holds what was stored, leases that were given back excepted, before it says it is ready."""
    early = NatsRig(nats_client)
    for agent_id in ("ada", "bob"):
        await early.cards.put(record(agent_id))
        await early.leases.renew(AgentId(agent_id))
    await early.leases.release(BOB)
    await early.memberships.add((ADA, BOB), ROOM)
    await early.memberships.remove(BOB, ROOM)
    async with background(*early.followers()):
        await early.ready()
        seen = [found.card.agent_id for found in early.view.cards()], early.view.is_online(ADA), early.view.is_online(BOB)
        assert (*seen, list(early.changes.agents())) == (["ada", "bob"], True, False, [ADA])


async def test_views_survive_a_crash_of_the_server(nats_client: Client, nats_server: NatsServer) -> None:
    """After nats-server was killed views show what was stored, what changed since, and who did not renew."""
    rig = NatsRig(nats_client)
    noticed: list[AgentId] = []
    rig.view.listen(noticed.append)
    async with background(*rig.followers()):
        await rig.ready()
        for agent_id in ("ada", "bob"):
            await rig.cards.put(record(agent_id))
            await rig.leases.renew(AgentId(agent_id))
        await rig.memberships.add((ADA,), ROOM)
        await eventually(lambda: rig.view.is_online(BOB) and list(rig.changes.agents()) == [ADA])
        await crash(nats_server)
        await nats_server.start()
        await eventually(lambda: nats_client.is_connected)
        await rig.leases.renew(ADA)
        await rig.cards.put(record("eve"))
        await eventually(lambda: not rig.view.is_online(BOB) and rig.view.card(AgentId("eve")) == record("eve"))
        await rig.leases.renew(ADA)
        await eventually(lambda: rig.view.is_online(ADA))
        assert ([found.card.agent_id for found in rig.view.cards()], list(rig.changes.agents())) == (["ada", "bob", "eve"], [ADA])
        assert {ADA, BOB, AgentId("eve")} <= set(noticed)


async def test_listeners_hear_of_each_change_once(nats_client: Client) -> None:
    """Whoever listens to a view hears of an agent that comes, goes, and changes its card, and not of mere renewals and loads."""
    rig = NatsRig(nats_client)
    noticed: list[tuple[AgentId, bool]] = []
    async with background(rig.view.follow_leases()):
        await asyncio.wait_for(rig.view.leases_ready.wait(), 10)
        rig.view.listen(lambda agent_id: noticed.append((agent_id, rig.view.is_online(agent_id))))
        for tasks in range(3):
            await rig.leases.renew(ADA, Load(tasks=tasks))
        await rig.leases.release(ADA)
        await rig.leases.renew(BOB)
        await eventually(lambda: (BOB, True) in noticed)
    assert noticed == [(ADA, True), (ADA, False), (BOB, True)]
