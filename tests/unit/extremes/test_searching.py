"""Whatever stands on a stranger's card, in what he says of his load, or in a search: others are found, and in an order."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import pairwise
from math import isfinite
from typing import Any

import pytest

from ioa.cli.examination import models_finding
from ioa.client.documents import AgentDocument, told
from ioa.errors import IoaError
from ioa.protocol.cards import AgentCard
from ioa.protocol.codec import decode, encode, receive
from ioa.protocol.ids import AgentId, PoolId
from ioa.protocol.model import Model
from ioa.protocol.registry import ListAgents, Register, Renew
from ioa.protocol.search import Need, Search, SearchResult
from ioa_testkit.memory_discovery import MemoryDiscovery
from tests.unit.extremes.places import EXTREMES, Whole, changed, packed
from tests.unit.runtime.plane import LEASE, Plane

_STRANGER = AgentId("mallory")
_FITTING = {"agent_id": _STRANGER, "pool": _STRANGER, "session": None, "previous": None, "proof": None}
_HONEST = (
    AgentCard(agent_id=AgentId("ada"), name="ada", description="Counts cars", pool=PoolId("ada")),
    AgentCard(agent_id=AgentId("bob"), name="bob", description="Paints vases", examples=("paint a vase",), pool=PoolId("bob")),
)
_SEARCH = Search(needs=(Need(text="count cars"), Need(text="paint a vase")), purpose="g1")


@pytest.mark.blocks_loop  # what is sent is made on it
async def test_whatever_a_stranger_says_of_himself_others_are_found() -> None:
    """No card and no load makes an order that is none, a search that fails, or a list that cannot be told."""
    plane, discovery = await _with_agents()
    taken = 0
    for kind, answering in ((Register, plane.registry.register), (Renew, plane.registry.renew)):
        for place, said in _said(kind):
            if (said.card if isinstance(said, Register) else said).agent_id != _STRANGER:
                continue  # whose names he may take is looked at elsewhere
            try:
                await answering(said)
            except IoaError:
                continue
            await discovery.touch(_STRANGER)
            found = await _found(discovery, _SEARCH, place)
            assert {hit.card.agent_id for hit in found.merged} >= {"ada", "bob"}, place
            agents = (await plane.registry.list(ListAgents())).agents
            json.dumps([told(AgentDocument.of(status)) for status in agents], allow_nan=False)
            models_finding(agents)
            taken += 1
    assert taken


@pytest.mark.blocks_loop  # what is sent is made on it
async def test_whatever_is_searched_for_is_answered() -> None:
    """It is refused, or what is found stands in an order."""
    _, discovery = await _with_agents()
    count = 0
    for place, search in _said(Search):
        await _found(discovery, search, place)
        count += 1
    assert count


async def _with_agents() -> tuple[Plane, MemoryDiscovery]:
    plane = Plane()
    discovery = MemoryDiscovery(plane.view, plane.clock, LEASE / 3)
    for card in _HONEST:
        await plane.registry.register(Register(card=card))
        await discovery.touch(card.agent_id)
    return plane, discovery


def _said(kind: type[Model]) -> Iterator[tuple[str, Any]]:
    """Yield what can be read of all that a request of a kind becomes."""
    base = Whole(kind, _FITTING | {"text": "count cars"}).least()
    for place, value in changed(base, (*EXTREMES, *Whole(kind).bounds())):
        if (data := packed(value)) is not None:
            try:
                yield place, receive(kind, data)
            except IoaError:
                continue


async def _found(discovery: MemoryDiscovery, search: Search, place: str) -> SearchResult:
    """Search, and see that what is found can be told, and stands in an order."""
    try:
        found = await discovery.search(search)
    except IoaError:
        return SearchResult(by_need=(), merged=())
    except Exception as error:
        error.add_note(place)
        raise
    assert decode(SearchResult, encode(found)) == found, place
    json.dumps(found.model_dump(mode="json"), allow_nan=False)
    for need in found.by_need:
        assert all(isfinite(hit.score) and isfinite(hit.similarity) for hit in need.hits), place
        assert all(first.score >= second.score for first, second in pairwise(need.hits)), place
    return found
