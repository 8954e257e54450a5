"""Registering agents and keeping their leases."""

from __future__ import annotations

import asyncio
from contextlib import nullcontext
from datetime import timedelta

import pytest

from ioa.adapters.nats.requests.endpoints import answer_agent
from ioa.beside import beside
from ioa.errors import (
    AlreadyRunningError,
    ConflictError,
    ForbiddenError,
    IdTakenError,
    InvalidInputError,
    NotFoundError,
    PayloadTooLargeError,
    SupersededError,
    UnavailableError,
)
from ioa.protocol import subjects
from ioa.protocol.cards import MAX_CARD_BYTES, AgentCard, Skill, abridged, card_bytes
from ioa.protocol.codec import MAX_PAYLOAD_BYTES, encode
from ioa.protocol.ids import AgentId, CommId, PoolId, SessionId
from ioa.protocol.load import MAX_SLOTS, Load
from ioa.protocol.registry import Agents, Deregister, GetAgents, Lease, ListAgents, Register, Renew
from ioa.protocol.registry_records import EMPTY_RENEWAL, CardRecord, Claim, HeldClaim, Renewal
from ioa.testing.manual_clock import NEW_YEAR
from ioa_registry.heartbeat import beat
from tests.rig.deadline import eventually
from tests.unit.group.scenario import card
from tests.unit.runtime.plane import ADA, BOB, LEASE, ROOM, Plane, session


async def test_registering_makes_an_agent_known_and_alive(plane: Plane) -> None:
    """A registered agent is online, its pool has a queue, and it is told how long its lease lasts."""
    lease = await plane.registry.register(Register(card=card("ada")))
    [status] = (await plane.registry.get(GetAgents(agent_ids=(ADA, BOB)))).agents
    assert (lease.duration, lease.renew_every, lease.joined) == (LEASE, LEASE / 3, 0)
    assert (status.online, status.registered_at, plane.work.pools) == (True, NEW_YEAR, {PoolId("ada")})


async def test_registering_again_updates_the_card(plane: Plane) -> None:
    """A new card replaces the old; the agent stays the one that registered first."""
    await plane.join(ADA)
    plane.clock.advance(timedelta(minutes=1))
    await plane.registry.register(Register(card=card("ada").model_copy(update={"name": "Ada II"})))
    [status] = (await plane.registry.get(GetAgents(agent_ids=(ADA,)))).agents
    assert (status.card.name, status.registered_at, status.online) == ("Ada II", NEW_YEAR, True)


async def test_a_card_that_says_too_little_is_advised(plane: Plane) -> None:
    """A card without examples, or with hardly any, is accepted with a word on what to add; one with enough without."""
    examples = ("Count to ten.", "How many are there?", "Add these up.")
    answers = [
        await plane.registry.register(Register(card=card("ada").model_copy(update={"examples": examples[:number]})))
        for number in (0, 1, 3)
    ]
    told = [[warning.split(":")[0] for warning in answer.warnings] for answer in answers]
    none, few = "The card has no examples, and discovery goes by them most", "The card has only 1 of the six to twelve examples"
    assert [told[0][0], told[1][0][: len(few)], told[2]] == [none, few, []]


async def test_a_renewal_tells_how_busy_the_agent_is(plane: Plane) -> None:
    """Whoever lists agents sees the load of their last renewal; registering again is no work."""
    await plane.join(ADA)
    await plane.registry.renew(Renew(agent_id=ADA, load=Load(tasks=3, groups=2, slots=4)))
    [status] = (await plane.registry.list(ListAgents())).agents
    assert status.load == Load(tasks=3, groups=2, slots=4)


async def test_a_lease_that_is_not_renewed_takes_the_agent_offline(plane: Plane) -> None:
    """Offline is not forgotten: the card stays, and renewing is enough to come back."""
    await plane.join(ADA)
    plane.clock.advance(LEASE)
    seen = [status.online for status in (await plane.registry.list(ListAgents())).agents]
    await plane.registry.renew(Renew(agent_id=ADA))
    seen += [status.online for status in (await plane.registry.list(ListAgents())).agents]
    assert seen == [False, True]


async def test_the_unknown_cannot_renew() -> None:
    """An agent that the registry does not know is told to register."""
    with pytest.raises(NotFoundError, match="Register first"):
        await Plane().registry.renew(Renew(agent_id=ADA))


async def test_only_the_pool_that_an_agent_registered_in_keeps_its_lease(plane: Plane) -> None:
    """Who renews as of another pool is told to register, which its credentials allow for its own pool alone."""
    await plane.join(ADA)
    with pytest.raises(NotFoundError, match=r"not registered in the pool sums\. Register first"):
        await plane.registry.renew(Renew(agent_id=ADA, pool=PoolId("sums")))


@pytest.mark.parametrize(
    ("request_", "may"),
    [
        (Register(card=card("ada", pool="sums")), True),
        (Register(card=card("ada", pool="words")), False),
        (Register(card=card("bob", pool="sums")), False),
    ],
)
async def test_a_card_says_what_its_subject_says(plane: Plane, request_: Register, may: bool) -> None:
    """Agent and pool are those that the server let ask; a card of another pool draws no work to its agent."""
    register = answer_agent(Register, plane.registry.register, lambda asked: asked.card.agent_id, lambda asked: asked.card.pool)
    with nullcontext() if may else pytest.raises(ForbiddenError, match="may not send a request as"):
        await register(subjects.agent(PoolId("sums"), ADA, subjects.REGISTER), encode(request_))
    assert len(plane.view.cards()) == may


@pytest.mark.parametrize("load", [Load(slots=10_000), Load.counted(tasks=3, groups=2, slots=10_000)])
def test_nobody_is_as_idle_as_ten_thousand(load: Load) -> None:
    """However many slots an agent claims, it is ranked by sixty-four."""
    assert load.slots == MAX_SLOTS


async def test_each_process_has_an_inbox_of_its_own(plane: Plane) -> None:
    """It is told where it is when it registers, keeps it when it does so again, and leaves none to whoever takes the id over."""
    inboxes = [
        (await plane.registry.register(Register(card=card("ada"), session=session(name), previous=SessionId("s1")))).inbox
        for name in ("s1", "s1", "s2")
    ]
    assert (len(set(inboxes)), inboxes[0]) == (2, inboxes[1])
    assert (await plane.registry.renew(Renew(agent_id=ADA, session=SessionId("s2")))).inbox == ""
    assert (await plane.registry.register(Register(card=card("bob")))).inbox == ""


async def test_deregistering_is_at_once_and_may_be_repeated(plane: Plane) -> None:
    """An agent that leaves is offline; leaving twice, or without having come, is no error."""
    await plane.join(ADA)
    for agent_id in (ADA, ADA, BOB):
        await plane.registry.deregister(Deregister(agent_id=agent_id))
    assert [(status.card.agent_id, status.online) for status in (await plane.registry.list(ListAgents())).agents] == [(ADA, False)]


async def test_agents_are_listed_page_by_page(plane: Plane) -> None:
    """Pages follow the ids and join without gap; filters leave out pools and the absent."""
    for agent_id, pool in (("c", "x"), ("a", "x"), ("b", "y"), ("d", "x")):
        await plane.registry.register(Register(card=card(agent_id).model_copy(update={"pool": PoolId(pool)})))
    await plane.registry.deregister(Deregister(agent_id=AgentId("d")))

    async def ids(request: ListAgents) -> list[str]:
        return [status.card.agent_id for status in (await plane.registry.list(request)).agents]

    assert [await ids(ListAgents(limit=3)), await ids(ListAgents(limit=3, after=AgentId("c")))] == [["a", "b", "c"], ["d"]]
    assert await ids(ListAgents(pool=PoolId("x"), online_only=True)) == ["a", "c"]


async def test_a_lease_tells_that_the_agent_was_put_into_a_group(plane: Plane) -> None:
    """A number rises with each group the agent is put into, and stays while others are."""
    await plane.join(ADA, BOB)
    told = []
    for member, comm_id in ((ADA, ROOM), (BOB, ROOM), (ADA, CommId("other"))):
        await plane.memberships.add((member,), comm_id)
        told.append((await plane.registry.renew(Renew(agent_id=ADA))).joined)
    assert 0 < told[0] == told[1] < told[2]


@pytest.mark.parametrize("is_slow", [False, True])
async def test_a_renewal_depends_on_nothing_but_the_lease(plane: Plane, is_slow: bool) -> None:
    """If what else it tells is not to be had, or not soon, it is left out."""
    await plane.join(ADA)
    plane.clock.advance(LEASE / 2)

    async def newest(agent_id: AgentId) -> int:
        await asyncio.sleep(60 if is_slow else 0)
        raise UnavailableError(f"The record of {agent_id} is out of reach.")

    plane.memberships.newest = newest  # type: ignore[method-assign]
    lease = await plane.registry.renew(Renew(agent_id=ADA))
    plane.clock.advance(LEASE * 0.6)
    assert (lease, plane.view.is_online(ADA)) == (Lease(duration=LEASE, renew_every=LEASE / 3), True)


async def test_what_is_answered_from_the_records_waits_for_them(plane: Plane) -> None:
    """A registry that has just started renews and registers; who asks for a list is told to come again."""

    async def whole() -> None:
        await asyncio.Event().wait()

    plane.view.whole = whole  # type: ignore[method-assign]
    await plane.registry.register(Register(card=card("ada"), session=session("s1")))
    await plane.registry.renew(Renew(agent_id=ADA, session=SessionId("s1")))
    with pytest.raises(UnavailableError, match="not read its records"):
        await plane.registry.list(ListAgents())


async def test_the_registry_beats_through_outages() -> None:
    """It beats at least three times a lease, and goes on when the store is back."""
    plane, beats = Plane(), list[str]()

    async def failing(key: str, record: Renewal | None) -> None:
        beats.append("beat")
        if len(beats) < 3:
            raise UnavailableError("The store is out of reach.")

    plane.leases.put = failing  # type: ignore[method-assign]
    async with beside(beat(plane.leases, lease=timedelta(milliseconds=30), renew_every=timedelta(hours=1))):
        await eventually(lambda: len(beats) >= 4)


async def register(plane: Plane, name: str, *, previous: str | None = None, words: str = "", proof: str | None = None) -> Lease:
    """Register ada from a process."""
    known = card("ada").model_copy(update={"description": words} if words else {})
    return await plane.registry.register(
        Register(card=known, session=session(name), previous=SessionId(previous) if previous else None, proof=proof)
    )


@pytest.mark.parametrize("proof", [None, "", "guessed"])
async def test_session_alone_does_not_take_over_an_id(plane: Plane, proof: str | None) -> None:
    """Groups are told of sessions: who succeeds a process, or registers again as it, shows what its memory holds."""
    await register(plane, "s1", proof="kept")
    for name, previous in (("s2", "s1"), ("s1", None), ("s1", "s1")):
        with pytest.raises(AlreadyRunningError):
            await register(plane, name, previous=previous, proof=proof)
    await plane.registry.deregister(Deregister(agent_id=ADA, session=SessionId("s1"), proof=proof))
    assert plane.view.is_online(ADA)
    await register(plane, "s1", proof="kept")
    await register(plane, "s2", previous="s1", proof="kept")
    await plane.registry.deregister(Deregister(agent_id=ADA, session=SessionId("s2"), proof="kept"))
    assert not plane.view.is_online(ADA)


async def test_a_process_of_before_proofs_is_succeeded_by_its_session(plane: Plane) -> None:
    """So an agent is upgraded without a pause; back to the older version it waits for its lease to end."""
    await register(plane, "s1")
    await register(plane, "s2", previous="s1", proof="kept")
    with pytest.raises(AlreadyRunningError):
        await register(plane, "s3", previous="s2")
    plane.clock.advance(LEASE + timedelta(seconds=1))
    await register(plane, "s3", previous="s2")


async def test_an_id_that_is_in_use_is_not_given_away(plane: Plane) -> None:
    """A second process is told who holds the id, where, since when, and how long ago that one was heard."""
    await register(plane, "s1")
    plane.clock.advance(timedelta(seconds=4))
    with pytest.raises(AlreadyRunningError, match=r"process 7 on box \(since 2026-01-01 00:00:00 UTC\).*heard 4 s ago") as caught:
        await register(plane, "s2")
    with pytest.raises(IdTakenError, match="taken by another agent, process 7 on box"):
        await register(plane, "s3", words="Another agent altogether.")
    renewed = await plane.registry.renew(Renew(agent_id=ADA, session=SessionId("s1")))
    assert ("in the pool ada" in caught.value.hint, renewed.duration) == (True, LEASE)


async def test_a_process_that_was_silent_for_a_lease_may_be_succeeded(plane: Plane) -> None:
    """The newer process holds the id; the older, once it is heard again, is refused and names its successor."""
    await register(plane, "s1")
    plane.clock.advance(LEASE)
    await register(plane, "s2")
    with pytest.raises(SupersededError, match="taken over by process 7 on box"):
        await plane.registry.renew(Renew(agent_id=ADA, session=SessionId("s1")))
    await plane.registry.renew(Renew(agent_id=ADA, session=SessionId("s2")))


async def test_process_with_the_memory_succeeds_at_once(plane: Plane) -> None:
    """A process that was killed and started again need not wait for its own lease to run out; nor need one that asks twice."""
    for name, previous in (("s1", None), ("s1", None), ("s2", "s1")):
        await register(plane, name, previous=previous)
    with pytest.raises(ConflictError):
        await register(plane, "s1")
    await plane.registry.renew(Renew(agent_id=ADA, session=SessionId("s2")))


async def test_only_the_holder_takes_the_agent_offline(plane: Plane) -> None:
    """The orderly end of a process that holds the id no more costs its successor nothing."""
    await register(plane, "s1")
    await register(plane, "s2", previous="s1")
    await plane.registry.deregister(Deregister(agent_id=ADA, session=SessionId("s1")))
    before = plane.view.is_online(ADA)
    await plane.registry.deregister(Deregister(agent_id=ADA, session=SessionId("s2")))
    assert (before, plane.view.is_online(ADA)) == (True, False)


async def test_an_id_that_was_given_back_is_free(plane: Plane) -> None:
    """After an orderly end anybody may register at once, however short ago it was."""
    await register(plane, "s1")
    await plane.registry.deregister(Deregister(agent_id=ADA, session=SessionId("s1")))
    await register(plane, "s2", words="Another agent altogether.")
    assert plane.view.is_online(ADA)


async def test_clients_without_sessions_go_on_until_one_claims_the_id(plane: Plane) -> None:
    """An older client registers, renews and leaves as ever; against a living process with a session it is refused."""
    await plane.join(ADA)
    await plane.registry.renew(Renew(agent_id=ADA))
    await register(plane, "s1")
    with pytest.raises(SupersededError):
        await plane.registry.renew(Renew(agent_id=ADA))
    with pytest.raises(AlreadyRunningError):
        await plane.join(ADA)
    plane.clock.advance(LEASE)
    await plane.join(ADA)
    await plane.registry.renew(Renew(agent_id=ADA))
    assert plane.view.is_online(ADA)


async def test_of_two_processes_that_register_at_once_one_holds_the_id(plane: Plane) -> None:
    """Whoever writes second looks again, and finds the other."""
    read, seen = plane.sessions.read, list[HeldClaim | None]()

    async def read_and_lose(agent_id: AgentId) -> HeldClaim | None:
        held = await read(agent_id)
        if not seen:
            await plane.sessions.write(agent_id, Claim(session=session("s1"), card="other"), revision=0)
            await plane.leases.put(agent_id, EMPTY_RENEWAL)
        seen.append(held)
        return held

    plane.sessions.read = read_and_lose  # type: ignore[method-assign]
    with pytest.raises(IdTakenError):
        await register(plane, "s2")
    assert (seen[0], len(seen)) == (None, 2)


def wordy(agent_id: str) -> AgentCard:
    """A card of 5.5 kB, as rich ones are."""
    skills = tuple(Skill(name=f"skill {number}", description="s" * 300) for number in range(8))
    return card(agent_id).model_copy(update={"skills": skills, "examples": ("e" * 230,) * 12})


async def put(plane: Plane, *cards: AgentCard) -> list[AgentId]:
    """Have cards on record, however large: an older registry took any."""
    for one in cards:
        await plane.cards.put(one.agent_id, CardRecord(card=one, registered_at=NEW_YEAR))
    return [one.agent_id for one in cards]


async def listed(plane: Plane) -> list[Agents]:
    """All pages of the list."""
    pages = [await plane.registry.list(ListAgents())]
    while pages[-1].more:
        pages.append(await plane.registry.list(ListAgents(after=pages[-1].agents[-1].card.agent_id)))
    return pages


def agents_in(pages: list[Agents]) -> list[AgentId]:
    """The agents in the pages."""
    return [status.card.agent_id for page in pages for status in page.agents]


async def test_two_hundred_rich_cards_are_listed(plane: Plane) -> None:
    """A page is bounded by bytes, and states that more agents follow."""
    known = await put(plane, *(wordy(f"agent-{number:03}") for number in range(200)))
    pages = await listed(plane)
    assert (agents_in(pages), max(len(encode(page)) for page in pages) < MAX_PAYLOAD_BYTES, len(pages)) == (known, True, 2)


async def test_agents_are_looked_up_by_pages_too(plane: Plane) -> None:
    """A caller that requests many ids requests the ids after the last returned id again."""
    wanted = await put(plane, *(wordy(f"agent-{number:03}") for number in range(200)))
    first = await plane.registry.get(GetAgents(agent_ids=tuple(wanted)))
    rest = wanted[wanted.index(first.agents[-1].card.agent_id) + 1 :]
    second = await plane.registry.get(GetAgents(agent_ids=tuple(rest)))
    assert (first.more, second.more, agents_in([first, second])) == (True, False, wanted)


async def test_a_card_too_large_is_refused_with_what_to_do(plane: Plane) -> None:
    """The error contains the size of the card, the limit, and the field to shorten."""
    large = card("ada").model_copy(update={"examples": ("e" * 1_000,) * 16})
    with pytest.raises(PayloadTooLargeError, match=r"The card of ada has 16,.* 16,000 are allowed. Shorten"):
        await plane.registry.register(Register(card=large))
    await plane.registry.register(Register(card=large.model_copy(update={"examples": large.examples[:15]})))
    assert agents_in(await listed(plane)) == ["ada"]


async def test_a_card_with_a_text_that_nothing_can_store_is_refused(plane: Plane) -> None:
    """The error names the field, and no card is stored."""
    odd = card("ada").model_copy(update={"examples": ("count", "a\0b")})
    register = answer_agent(Register, plane.registry.register, lambda asked: asked.card.agent_id, lambda asked: asked.card.pool)
    with pytest.raises(InvalidInputError, match=r"examples\.1: .* holds the character zero"):
        await register("ioa.v1.agent.ada.ada.registry.register", encode(Register(card=odd)))
    assert await plane.cards.find(AgentId("ada")) is None


@pytest.mark.parametrize("most", [MAX_CARD_BYTES, 7_000, 3_000])
def test_a_card_is_abridged_to_what_its_fellows_need(most: int) -> None:
    """Whatever it consists of, it fits, and keeps its name and the beginning of its description."""
    full = AgentCard.model_validate(
        {
            "agent_id": "ada",
            "name": "é" * 200,
            "description": "Helps. " + "é" * 3_000,
            "skills": [{"name": "é" * 200, "description": "é" * 1_000}] * 50,
            "examples": ["é" * 4_000] * 3,
            "tags": ["é" * 64] * 50,
        }
    )
    short = abridged(full, most)
    assert (card_bytes(short) <= most, short.name, short.description.startswith("Helps."), abridged(card("bob"), most)) == (
        True,
        full.name,
        True,
        card("bob"),
    )
