"""What cards, leases, sessions and their live views promise."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine
from typing import Any

import pytest
from nats.aio.client import Client

from ioa.adapters.nats.stores.nats_registry_view import NatsRegistryView
from ioa.adapters.nats.stores.records import Records
from ioa.adapters.nats.stores.sessions import NatsSessions
from ioa.adapters.nats.streams import follow as nats_follow
from ioa.adapters.nats.streams.topology import CARDS, LEASES, SESSIONS
from ioa.adapters.nats.wire.embedded_server import NatsServer
from ioa.concurrency import beside
from ioa.errors import SupersededError
from ioa.protocol.cards import IDLE, Load, ModelReport
from ioa.protocol.ids import AgentId, CommId, PoolId, SessionId
from ioa.protocol.registry import EMPTY_RENEWAL, CardRecord, Claim, Renewal
from ioa_registry.heartbeat import beat
from tests.contract.control_plane.conftest import LEASE
from tests.rig.deadline import eventually
from tests.rig.nats_server import crash
from tests.unit.group.scenario import START, card
from tests.unit.runtime.plane import session

ADA, BOB, EVE = AgentId("ada"), AgentId("bob"), AgentId("eve")
ROOM, OTHER = CommId("room"), CommId("other")


class Rig:
    """Everything in buckets."""

    def __init__(self, client: Client) -> None:
        self.cards, self.leases = Records(client, CARDS, CardRecord), Records(client, LEASES, Renewal)
        self.view, self.sessions = NatsRegistryView(client, LEASE), NatsSessions(client)

    def followers(self) -> tuple[Coroutine[Any, Any, None], ...]:
        """What keeps the views current, and the registry's heartbeat, without which no silence means anything."""
        beating = beat(self.leases, lease=LEASE, renew_every=LEASE)
        return self.view.follow_cards(), self.view.follow_leases(), self.sessions.follow(), beating

    async def put_card(self, agent_id: str, name: str = "") -> None:
        """Store a card."""
        await self.cards.put(agent_id, record(agent_id, name))

    async def ready(self) -> None:
        """Wait until the views are whole."""
        async with asyncio.timeout(10):
            await self.view.whole()


@pytest.fixture
async def rig(client: Client) -> AsyncIterator[Rig]:
    """An empty registry."""
    rig = Rig(client)
    async with beside(*rig.followers()):
        await rig.ready()
        yield rig


def record(agent_id: str, name: str = "") -> CardRecord:
    """A card on record."""
    return CardRecord(card=card(agent_id).model_copy(update={"name": name or agent_id}), registered_at=START)


async def test_stored_card_is_read_at_once_and_listed_by_id(rig: Rig) -> None:
    """The last card of an id counts; the view follows the store."""
    assert (await rig.cards.find(ADA), rig.view.card(ADA), rig.view.is_online(ADA)) == (None, None, False)
    for agent_id in ("bob", "eve", "ada"):
        await rig.put_card(agent_id)
    await rig.put_card("bob", name="Bob II")
    assert await rig.cards.find(BOB) == record("bob", name="Bob II")
    listed = await eventually(rig.view.cards, lambda seen: len(seen) == 3 and rig.view.card(BOB) == record("bob", name="Bob II"))
    assert [found.card.agent_id for found in listed] == ["ada", "bob", "eve"]


async def test_a_pool_has_the_cards_that_are_of_it_now(rig: Rig) -> None:
    """In the order of their ids; a card that is put again with another pool is of that one alone."""
    told = [("bob", "a"), ("ada", "a"), ("eve", "b")]
    for agent_id, pool in told:
        await rig.cards.put(agent_id, CardRecord(card=card(agent_id, pool=pool), registered_at=START))

    def pools() -> list[list[str]]:
        return [[found.card.agent_id for found in rig.view.of_pool(PoolId(pool))] for pool in "abc"]

    await eventually(pools, lambda seen: seen == [["ada", "bob"], ["eve"], []])
    for agent_id in ("ada", "eve"):
        await rig.cards.put(agent_id, CardRecord(card=card(agent_id, pool="c"), registered_at=START))
    await eventually(pools, lambda seen: seen == [["bob"], [], ["ada", "eve"]])


async def test_a_lease_that_runs_out_takes_its_agent_offline_without_forgetting_it(rig: Rig) -> None:
    """An agent that renews no more is offline after its lease; its card stays, and it may come back."""
    await rig.put_card("ada")
    await rig.leases.put(ADA, EMPTY_RENEWAL)
    assert await eventually(lambda: rig.view.is_online(ADA) and rig.view.card(ADA) == record("ada"))
    await eventually(lambda: not rig.view.is_online(ADA))
    silence = rig.view.silence(ADA)
    assert silence is not None and silence >= LEASE
    assert (rig.view.card(ADA), rig.view.is_lost(ADA), rig.view.silence(BOB)) == (record("ada"), True, None)
    await rig.leases.put(ADA, EMPTY_RENEWAL)
    assert await eventually(lambda: rig.view.is_online(ADA))


async def test_a_lease_tells_how_busy_its_agent_is_and_how_its_model_answers(rig: Rig) -> None:
    """The view shows what the last renewal told, and nothing for a lease that says nothing or is gone."""
    report = ModelReport(name="large", failures=3)
    await rig.leases.put(ADA, Renewal(load=Load(tasks=1, groups=1, slots=4)))
    await rig.leases.put(ADA, Renewal(load=Load(tasks=3, groups=2, slots=4), model=report))
    await rig.leases.put(BOB, EMPTY_RENEWAL)
    assert await eventually(lambda: rig.view.is_online(BOB))
    seen, models = (rig.view.load(ADA), rig.view.load(BOB)), (rig.view.model(ADA), rig.view.model(BOB))
    await rig.leases.put(ADA, None)
    await eventually(lambda: not rig.view.is_online(ADA))
    assert (*seen, rig.view.load(ADA)) == (Load(tasks=3, groups=2, slots=4), IDLE, IDLE)
    assert (*models, rig.view.model(ADA)) == (report, None, None)


async def test_agent_that_releases_its_lease_is_offline_at_once_and_lost_one_lease_later(rig: Rig) -> None:
    """An agent that restarts within a lease is never lost. Releasing a lease that does not exist is no error."""
    await rig.leases.put(ADA, EMPTY_RENEWAL)
    await eventually(lambda: rig.view.is_online(ADA))
    await rig.leases.put(ADA, None)
    await rig.leases.put(BOB, None)
    assert await eventually(lambda: not rig.view.is_online(ADA), within=LEASE / 2)
    assert not rig.view.is_lost(ADA)
    assert await eventually(lambda: rig.view.is_lost(ADA))


async def test_an_id_is_claimed_by_one_process(rig: Rig) -> None:
    """Of two that write on the same revision one succeeds; whoever holds the id may speak, and nobody else."""
    first, second = (Claim(session=session(name), card="digest") for name in ("s1", "s2"))
    taken = [await rig.sessions.write(ADA, claim, revision=0) for claim in (first, second)]
    claim, revision = await rig.sessions.read(ADA)
    assert (taken, claim) == ([True, False], first)
    taken = [await rig.sessions.write(ADA, second, revision=revision) for _ in range(2)]
    assert taken == [True, False]

    async def is_refused(name: str | None) -> bool:
        try:
            await rig.sessions.check(ADA, SessionId(name) if name else None)
        except SupersededError:
            return True
        return False

    await eventually(lambda: is_refused("s1"))
    assert [await is_refused(name) for name in ("s2", None)] == [False, True]


async def test_an_id_that_was_given_back_is_anybodys(rig: Rig) -> None:
    """It is given back by whoever knows its revision, and may be claimed again."""
    claim = Claim(session=session("s1"), card="digest")
    await rig.sessions.write(ADA, claim, revision=0)
    _, written = await rig.sessions.read(ADA)
    removed = [await rig.sessions.write(ADA, None, revision=revision) for revision in (written + 9, written)]
    gone, released = await rig.sessions.read(ADA)
    assert (removed, gone) == ([False, True], None)
    await rig.sessions.check(ADA, SessionId("s2"))
    assert await rig.sessions.write(ADA, claim, revision=released)


async def test_lagging_view_rejects_no_agent(client: Client) -> None:
    """A router that has not seen yet that the id changed hands asks the store before it refuses the new holder."""
    sessions = NatsSessions(client)
    await sessions.write(ADA, Claim(session=session("s1"), card="digest"), revision=0)
    async with beside(sessions.follow()):
        await eventually(lambda: (claim := sessions._claims.get(ADA)) is not None and claim.session.session == "s1")
    _, revision = await sessions.read(ADA)
    await sessions.write(ADA, Claim(session=session("s2"), card="digest"), revision=revision)
    await sessions.check(ADA, SessionId("s2"))
    with pytest.raises(SupersededError):
        await sessions.check(ADA, None)


async def test_unreadable_records_are_skipped(client: Client) -> None:
    """Keys that are no ids and values that cannot be decoded affect no other record, and claim no id."""
    rig = Rig(client)

    async def put_garbage() -> None:
        for name in (CARDS, LEASES, SESSIONS):
            bucket = await client.jetstream().key_value(name)
            await bucket.put("not.an.id", b"\xc1")
            await bucket.put("ada", b"\xc1 no msgpack")

    await put_garbage()
    async with beside(*rig.followers()):
        await rig.ready()
        await put_garbage()
        await rig.put_card("bob")
        await rig.leases.put(BOB, EMPTY_RENEWAL)
        await eventually(lambda: rig.view.is_online(BOB) and rig.view.card(BOB) == record("bob"))
        await rig.sessions.check(ADA, SessionId("s1"))
        claim, _ = await rig.sessions.read(ADA)
        assert (claim, list(rig.view.cards())) == (None, [record("bob")])
        await rig.put_card("ada")
        await eventually(lambda: rig.view.card(ADA))


async def test_a_watch_that_the_server_has_lost_is_opened_again(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    """A watch dies with its node, and no message says so: who hears nothing for a while asks."""
    monkeypatch.setattr(nats_follow, "_QUIET_SECONDS", 0.2)
    view = NatsRegistryView(client, LEASE)
    async with beside(view.follow_cards()):
        await asyncio.wait_for(view.cards_ready.wait(), 10)
        js = client.jetstream()
        for consumer in await js.consumers_info(f"KV_{CARDS}"):
            await js.delete_consumer(f"KV_{CARDS}", consumer.name)
        await Records(client, CARDS, CardRecord).put("ada", record("ada"))
        assert await eventually(lambda: view.card(ADA)) == record("ada")


async def test_views_survive_a_crash_of_the_server(client: Client, nats_server: NatsServer) -> None:
    """After nats-server was killed views show what was stored, what changed since, and who did not renew."""
    rig = Rig(client)
    noticed: list[AgentId] = []
    rig.view.listen(noticed.append)
    async with beside(*rig.followers()):
        await rig.ready()
        for agent_id in ("ada", "bob"):
            await rig.put_card(agent_id)
            await rig.leases.put(AgentId(agent_id), EMPTY_RENEWAL)
        await eventually(lambda: rig.view.is_online(BOB))
        await crash(nats_server)
        await nats_server.start()
        await eventually(lambda: client.is_connected)
        await rig.leases.put(ADA, EMPTY_RENEWAL)
        await rig.put_card("eve")
        await eventually(lambda: not rig.view.is_online(BOB) and rig.view.card(AgentId("eve")) == record("eve"))
        await rig.leases.put(ADA, EMPTY_RENEWAL)
        await eventually(lambda: rig.view.is_online(ADA))
        assert [found.card.agent_id for found in rig.view.cards()] == ["ada", "bob", "eve"]
        assert {ADA, BOB, AgentId("eve")} <= set(noticed)


async def test_listeners_hear_of_each_change_once(client: Client) -> None:
    """Whoever listens to a view hears of an agent that comes, goes, and changes its card, and not of mere renewals and loads."""
    rig = Rig(client)
    noticed: list[tuple[AgentId, bool]] = []
    async with beside(rig.view.follow_leases()):
        await asyncio.wait_for(rig.view.leases_ready.wait(), 10)
        rig.view.listen(lambda agent_id: noticed.append((agent_id, rig.view.is_online(agent_id))))
        for tasks in range(3):
            await rig.leases.put(ADA, Renewal(load=Load(tasks=tasks)))
        await rig.leases.put(ADA, None)
        await rig.leases.put(BOB, EMPTY_RENEWAL)
        await eventually(lambda: (BOB, True) in noticed)
    assert noticed == [(ADA, True), (ADA, False), (BOB, True)]
