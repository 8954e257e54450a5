"""How well discovery finds agents, on the sets that come with the project."""

from __future__ import annotations

import pytest

from benchmarks.discovery_figures import measure
from benchmarks.discovery_sets import OWN, sets_in, variants_of
from benchmarks.discovery_ways import Ours
from ioa_discovery.embedding_model import open_embedder
from ioa_discovery.exact_index import ExactIndex
from ioa_discovery.indexer import Indexer, RegisteredAgent
from ioa_discovery.searcher import Searcher

_GOLDEN = {
    "field": (0.672, 0.966, 0.791),
    "office": (0.831, 1.0, 0.891),
}
"""Top@1, Top@10 and mean reciprocal rank by set, for cards with examples, as `benchmarks.discovery` reports them."""
_TOLERANCE = 0.01


async def test_quality_of_shipped_sets_matches_the_golden_figures() -> None:
    """A change of ranking states its effect in this table."""
    found: dict[str, tuple[float, float, float]] = {}
    async with open_embedder() as embedder:
        for variant in (one for folder in sets_in(OWN) for one in variants_of(folder) if one.cards_are == "examples"):
            index = ExactIndex(embedder.dimension)
            await Indexer(index, embedder).apply({card.agent_id: RegisteredAgent(card, online=True) for card in variant.cards})
            way = Ours(Searcher(index, embedder), with_keywords=False)
            figures = await measure(way, variant.cases, lambda: None)
            found[variant.set_name] = (figures.top_1, figures.top_10, figures.mrr)
    assert found.keys() == _GOLDEN.keys()
    for name, golden in _GOLDEN.items():
        assert found[name] == pytest.approx(golden, abs=_TOLERANCE), name
