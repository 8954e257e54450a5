"""Lists of agents fit into messages, whatever their cards weigh."""

from __future__ import annotations

import pytest

from ioa.adapters.nats.requests.endpoints import answer_agent
from ioa.errors import InvalidInputError, PayloadTooLargeError
from ioa.protocol.cards import MAX_CARD_BYTES, AgentCard, Skill, abridged, card_bytes
from ioa.protocol.codec import MAX_PAYLOAD_BYTES, encode
from ioa.protocol.ids import AgentId
from ioa.protocol.registry import Agents, GetAgents, ListAgents, Register
from ioa.protocol.registry_records import CardRecord
from ioa.testing.manual_clock import NEW_YEAR
from tests.unit.group.scenario import card
from tests.unit.runtime.plane import Plane


def wordy(agent_id: str) -> AgentCard:
    """A card of 5.5 kB, as rich ones are."""
    skills = tuple(Skill(name=f"skill {number}", description="s" * 300) for number in range(8))
    return card(agent_id).model_copy(update={"skills": skills, "examples": ("e" * 230,) * 12})


async def put(plane: Plane, *cards: AgentCard) -> list[AgentId]:
    """Have cards on record, however large: an older registry took any."""
    for one in cards:
        await plane.cards.put(CardRecord(card=one, registered_at=NEW_YEAR))
    return [one.agent_id for one in cards]


async def listed(plane: Plane) -> list[Agents]:
    """All pages of the list."""
    pages = [await plane.registry.list(ListAgents())]
    while pages[-1].more:
        pages.append(await plane.registry.list(ListAgents(after=pages[-1].agents[-1].card.agent_id)))
    return pages


def told(pages: list[Agents]) -> list[AgentId]:
    """Who stands in them."""
    return [status.card.agent_id for page in pages for status in page.agents]


async def test_two_hundred_rich_cards_are_listed() -> None:
    """A page is filled by bytes, and says that there is more."""
    plane = Plane()
    known = await put(plane, *(wordy(f"agent-{number:03}") for number in range(200)))
    pages = await listed(plane)
    assert (told(pages), max(len(encode(page)) for page in pages) < MAX_PAYLOAD_BYTES, len(pages)) == (known, True, 2)


async def test_agents_are_looked_up_by_pages_too() -> None:
    """Whoever asks for many by id asks again for those behind the last one."""
    plane = Plane()
    wanted = await put(plane, *(wordy(f"agent-{number:03}") for number in range(200)))
    first = await plane.registry.get(GetAgents(agent_ids=tuple(wanted)))
    rest = wanted[wanted.index(first.agents[-1].card.agent_id) + 1 :]
    second = await plane.registry.get(GetAgents(agent_ids=tuple(rest)))
    assert (first.more, second.more, told([first, second])) == (True, False, wanted)


async def test_a_page_by_number_says_that_there_is_more() -> None:
    """The last page says that there is none."""
    plane = Plane()
    await put(plane, *(card(name) for name in ("a", "b", "c")))
    pages = [await plane.registry.list(ListAgents(limit=2)), await plane.registry.list(ListAgents(limit=2, after=AgentId("b")))]
    assert ([page.more for page in pages], told(pages)) == ([True, False], ["a", "b", "c"])


async def test_a_card_too_large_is_refused_with_what_to_do() -> None:
    """Registering says how large the card is, how large it may be, and what to shorten."""
    plane = Plane()
    large = card("ada").model_copy(update={"examples": ("e" * 1_000,) * 16})
    with pytest.raises(PayloadTooLargeError, match=r"The card of ada has 16,.* 16,000 are allowed. Shorten"):
        await plane.registry.register(Register(card=large))
    await plane.registry.register(Register(card=large.model_copy(update={"examples": large.examples[:15]})))
    assert told(await listed(plane)) == ["ada"]


async def test_a_card_with_a_text_that_nothing_can_store_is_refused() -> None:
    """The registry's edge says which field it is, and no card is on record."""
    plane = Plane()
    odd = card("ada").model_copy(update={"examples": ("count", "a\0b")})
    register = answer_agent(Register, plane.registry.register, lambda asked: asked.card.agent_id, lambda asked: asked.card.pool)
    with pytest.raises(InvalidInputError, match=r"examples\.1: .* holds the character zero"):
        await register("ioa.v1.agent.ada.ada.registry.register", encode(Register(card=odd)))
    assert await plane.cards.get(AgentId("ada")) is None


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
