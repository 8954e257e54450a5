"""Registering agents and keeping their leases."""

from __future__ import annotations

import asyncio
from contextlib import nullcontext
from datetime import timedelta

import pytest

from ioa.adapters.nats.requests.service import answer_agent
from ioa.concurrency import beside
from ioa.errors import (
    ForbiddenError,
    IdTakenError,
    InvalidInputError,
    UnavailableError,
)
from ioa.protocol import subjects
from ioa.protocol.cards import MAX_CARD_BYTES, MAX_SLOTS, AgentCard, Load, Skill, abridged, card_bytes
from ioa.protocol.codec import MAX_PAYLOAD_BYTES, encode
from ioa.protocol.ids import AgentId, PoolId, SessionId
from ioa.protocol.registry import (
    EMPTY_RENEWAL,
    Agents,
    CardRecord,
    Claim,
    Lease,
    ListAgents,
    Register,
    Renew,
    Renewal,
)
from ioa.testing.manual_clock import NEW_YEAR
from ioa_registry.heartbeat import beat
from tests.rig.deadline import eventually
from tests.unit.group.scenario import card
from tests.unit.runtime.plane import ADA, LEASE, Plane, session


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


@pytest.mark.parametrize("load", [Load(tasks=3, groups=2, slots=10_000)])
def test_nobody_is_as_idle_as_ten_thousand(load: Load) -> None:
    """However many slots an agent claims, it is ranked by sixty-four."""
    assert load.slots == MAX_SLOTS


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
    assert (lease, plane.view.is_online(ADA)) == (Lease(renew_every=LEASE / 3), True)


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


async def test_of_two_processes_that_register_at_once_one_holds_the_id(plane: Plane) -> None:
    """Whoever writes second looks again, and finds the other."""
    read, seen = plane.sessions.read, list[tuple[Claim | None, int]]()

    async def read_and_lose(agent_id: AgentId) -> tuple[Claim | None, int]:
        held = await read(agent_id)
        if not seen:
            await plane.sessions.write(agent_id, Claim(session=session("s1"), card="other"), revision=0)
            await plane.leases.put(agent_id, EMPTY_RENEWAL)
        seen.append(held)
        return held

    plane.sessions.read = read_and_lose  # type: ignore[method-assign]
    with pytest.raises(IdTakenError):
        await register(plane, "s2")
    assert (seen[0], len(seen)) == ((None, 0), 2)


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
