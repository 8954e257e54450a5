"""A wrong engine is found out at the start, and not by who gets the wrong agents."""

from __future__ import annotations

import pytest
import qdrant_edge as edge

from ioa.errors import IoaError
from ioa_discovery.index.edge_collections import create_engines
from ioa_discovery.index.edge_shard import Shard
from ioa_discovery.index.engine_check import check_engine
from ioa_discovery.index.shard_requests import Found, PointQuery


def test_the_installed_engine_is_right() -> None:
    """The engine that is installed gives the right answers, with a search tree and without."""
    check_engine()


class Deaf(Shard):
    """An engine that does not hear what is filtered by."""

    def search(self, query: PointQuery, *, exact: bool = False) -> Found:
        return super().search(query._replace(must=()), exact=exact)


class Blind(Shard):
    """An engine whose filters match nothing, as those on a boolean do."""

    def search(self, query: PointQuery, *, exact: bool = False) -> Found:
        return super().search(query._replace(must=(*query.must, ("online", 2))), exact=exact)


class Confused(Shard):
    """An engine that finds the right agents in the wrong order."""

    def search(self, query: PointQuery, *, exact: bool = False) -> Found:
        return {name: list(reversed(found)) for name, found in super().search(query, exact=exact).items()}


@pytest.mark.parametrize("kind", [Deaf, Blind, Confused], ids=lambda kind: kind.__name__)
def test_a_wrong_engine_is_refused(kind: type[Shard]) -> None:
    """An engine that answers wrongly is refused with an error that says what it got wrong, and what to do."""
    with pytest.raises(IoaError, match=r"a filter by a flag without a search tree.*with a search tree.*qdrant-edge-py"):
        check_engine(kind)


def test_a_boolean_in_a_filter_matches_nothing(tmp_path_factory: pytest.TempPathFactory) -> None:
    """The hazard that 0 and 1 are for is still there: once this fails, booleans may be stored as such."""
    engine = create_engines(tmp_path_factory.mktemp("shard"), 2, ("pool",), "online", wal=False).cards
    engine.update(edge.UpdateOperation.upsert_points([edge.Point(1, {"text": [1.0, 0.0]}, {"online": 1, "really": True})]))
    counts = [_count(engine, "online", 1), _count(engine, "really", True)]
    engine.close()
    assert counts == [1, 0]


def _count(engine: edge.EdgeShard, field: str, value: int) -> int:
    condition = edge.FieldCondition(field, match=edge.MatchValue(value))
    return engine.count(edge.CountRequest(filter=edge.Filter(must=[condition]), exact=True))
