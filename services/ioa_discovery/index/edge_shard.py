"""An open shard of Qdrant's engine, as the process that owns it uses it. Every call blocks, and holds the GIL.

Where few points match, or an eighth of all, a search compares all of them, which is as fast as the search tree there and never
wrong. Else it goes through the tree, which knows links between points of one pool; for other filters that leave little, the engine
is told to look further (ACORN), since a plain walk through the tree would end among points that do not match.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import ceil
from typing import Any, cast

from ioa_discovery.index.edge_collections import Collections
from ioa_discovery.index.edge_library import edge
from ioa_discovery.index.point_owners import PointOwners
from ioa_discovery.index.shard_requests import (
    AGENT_FIELD,
    BM25,
    CARD_FIELD,
    EXACT_BELOW_POINTS,
    EXAMPLE_FIELD,
    EXAMPLES,
    EXAMPLES_PER_AGENT,
    POINTS_PER_AGENT,
    POOL_FIELD,
    TEXT,
    WIDER,
    Found,
    Nearness,
    PointQuery,
    PointRecord,
    Row,
    ScrollAgents,
    Terms,
)
from ioa_discovery.vectors import components, packed_vector

_MAX_POINTS = 1_000_000
_BREADTH, _MAX_BREADTH = 128, 2_048
_POINTS_FOR_BREADTH = 1_500
"""The more points, the broader a search: by a breadth of 128, 99 % are found among 200,000 points and 70 % among 2,000,000."""
_EXACT_SHARE = 8
_SELECTIVE = 0.4
_SPARE, _FORGET = 1.1, 0.9995
_MAX_FILTERS = 1_000


class Shard:
    """A shard that is open.

    Args:
        engines: The engine's own handles.
        fields: The payload that candidates come with; the first is the agent's id.
        exact_below: Up to how many matching points everything is compared; None: as many as is faster.
        outside: How many of its points are not in its search tree.
    """

    def __init__(self, engines: Collections, fields: Sequence[str], *, exact_below: int | None = None, outside: int = 0) -> None:
        self._engines = engines
        self._exact_below = exact_below
        self._faces = PointOwners(fields)
        self._small: dict[tuple[object, ...], bool] = {}
        self._points_per_agent = float(POINTS_PER_AGENT)
        self._outside = outside
        self._written: set[edge.PointId] = set()

    def put(self, agent_ids: Sequence[str], records: Sequence[PointRecord]) -> None:
        """Replace all points of some agents."""
        self.delete(agent_ids)
        self._written.update(record.point_id for record in records)
        for engine, is_example in zip(self._engines.both(), (True, False), strict=True):
            new = [_point(record) for record in records if bool(record.payload[EXAMPLE_FIELD]) == is_example]
            if new:
                engine.update(edge.UpdateOperation.upsert_points(new))

    def set_payload(self, agent_ids: Sequence[str], payload: Mapping[str, object]) -> None:
        """Set some payload of all points of some agents. By filter: by id it would be kept for points that do not exist."""
        self._small.clear()
        for engine, known in self._points_of(agent_ids):
            # What is written to leaves the search tree, whatever is written: the engine moves it to where it can be changed.
            self._written.update(known)
            engine.update(edge.UpdateOperation.set_payload_by_filter(_of(agent_ids), dict(payload)))

    def delete(self, agent_ids: Sequence[str]) -> None:
        """Forget agents."""
        self._small.clear()
        for engine, known in self._points_of(agent_ids):
            self._faces.forget(known)
            self._written.difference_update(known)
            if known:
                engine.update(edge.UpdateOperation.delete_points_by_filter(_of(agent_ids)))

    def search(self, query: PointQuery, *, exact: bool = False) -> Found:
        """Return the best agents by each signal that the query has."""
        asked: dict[str, edge.Query] = {}
        if query.dense is not None:
            dense = components(query.dense).tolist()
            asked = {name: edge.Query.Nearest(dense, using=name) for name in (TEXT, EXAMPLES)}
        if query.terms is not None:
            asked[BM25] = edge.Query.Nearest(_sparse(query.terms), using=BM25)
        return {name: self._best(name, nearest, query, exact=exact) for name, nearest in asked.items()}

    def compare(self, need: bytes, agent_ids: Sequence[str]) -> dict[str, Nearness]:
        """Return how near a need those of the agents are that are here. By the engine, which need not hand out vectors for it."""
        dense, these = components(need).tolist(), _of(agent_ids)

        def scores(name: str, limit: int) -> Sequence[edge.ScoredPoint]:
            nearest = edge.Query.Nearest(dense, using=name)
            return self._engines.of(name).query(edge.QueryRequest(limit=limit, query=nearest, filter=these, params=_EXACT))

        texts, examples = scores(TEXT, len(agent_ids)), scores(EXAMPLES, len(agent_ids) * EXAMPLES_PER_AGENT)
        matched: dict[str, tuple[float, int]] = {}
        for (agent, number), point in zip(self._faces.of(self._engines.examples, examples), examples, strict=True):
            matched.setdefault(agent[0], (point.score, number))
        cards = self._engines.cards.retrieve([point.id for point in texts], with_payload=[CARD_FIELD], with_vector=False)
        stored = {record.id: (record.payload or {})[CARD_FIELD] for record in cards}
        return {
            agent[0]: Nearness(stored[point.id], point.score, *matched.get(agent[0], (-1.0, 0)))
            for (agent, _), point in zip(self._faces.of(self._engines.cards, texts), texts, strict=True)
        }

    def fetch(self, agent_ids: Sequence[str]) -> list[PointRecord]:
        """Return all points of some agents."""
        request = edge.ScrollRequest(limit=_MAX_POINTS, filter=_of(agent_ids), with_payload=True, with_vector=True)
        return [_record(record) for engine in self._engines.both() for record in engine.scroll(request)[0]]

    def page(self, request: ScrollAgents) -> tuple[list[Mapping[str, Any]], int | None]:
        """Return the payload of a page of agents, and where the next page begins."""
        asked = edge.ScrollRequest(offset=request.offset, limit=request.limit, with_payload=list(request.fields), with_vector=False)
        records, offset = self._engines.cards.scroll(asked)
        return [record.payload or {} for record in records], None if offset is None else _number(offset)

    def count(self) -> int:
        """Return how many agents there are, as the engine knows: counting 20,000 one by one takes 5 ms, in which searches wait."""
        return self._engines.cards.info().points_count

    def points(self) -> int:
        """Return how many points there are."""
        return self._engines.points()

    def outside(self) -> int:
        """Return how many points are not in the search tree, at the most: each search compares all of them."""
        return min(self.points(), self._outside + len(self._written))

    def build_tree(self) -> None:
        """Build the search trees over what has none yet, and merge what has grown apart."""
        for engine in self._engines.both():
            engine.optimize()
        self.flush()

    def flush(self) -> None:
        """Bring everything to disk."""
        for engine in self._engines.both():
            engine.flush()

    def close(self) -> None:
        """Bring everything to disk and let go of it."""
        self.flush()
        for engine in self._engines.both():
            engine.close()

    def _points_of(self, agent_ids: Sequence[str]) -> Iterator[tuple[edge.EdgeShard, list[edge.PointId]]]:
        asked = edge.ScrollRequest(limit=_MAX_POINTS, filter=_of(agent_ids), with_payload=False)
        for engine in self._engines.both():
            yield engine, [record.id for record in engine.scroll(asked)[0]]

    def _best(self, name: str, nearest: edge.Query, query: PointQuery, *, exact: bool) -> Sequence[Row]:
        """Return the best agents by one signal. An agent has many examples: its best one counts, and more points are asked for."""
        engine, allowed = self._engines.of(name), _allowed(query, name)
        points_count = engine.info().points_count
        params = _EXACT if exact or self._is_small(name, query, points_count) else _approximate(points_count)
        limit = ceil(query.limit * self._points_per_agent) if name == EXAMPLES else query.limit
        while True:
            points = engine.query(edge.QueryRequest(limit=limit, query=nearest, filter=allowed, params=params, with_payload=False))
            rows, looked_at = self._faces.agents(engine, points, query.limit)
            if len(rows) == query.limit or len(points) < limit:
                break
            limit *= WIDER
        if name == EXAMPLES and len(rows) == query.limit:
            # As many as were needed lately, and some to spare: asking twice costs more than asking for more.
            self._points_per_agent = max(_SPARE * looked_at / len(rows), _FORGET * self._points_per_agent)
        return rows

    def _is_small(self, name: str, query: PointQuery, points_count: int) -> bool:
        """Tell whether few points match, of whatever pools; remembered until something changes."""
        few = max(EXACT_BELOW_POINTS, points_count // _EXACT_SHARE) if self._exact_below is None else self._exact_below
        if points_count <= few:
            return True
        asked = (name, query.must, query.exclude)
        if asked not in self._small:
            if len(self._small) == _MAX_FILTERS:
                self._small.clear()
            matching = edge.CountRequest(filter=_allowed(query._replace(without={}), name), exact=False)
            self._small[asked] = self._engines.of(name).count(matching) <= few
        return self._small[asked]


_EXACT = edge.SearchParams(exact=True)


def _approximate(points_count: int) -> edge.SearchParams:
    return edge.SearchParams(
        hnsw_ef=min(_MAX_BREADTH, max(_BREADTH, points_count // _POINTS_FOR_BREADTH)),
        # No more than is asked for: that is ten times the places that matter.
        quantization=edge.QuantizationSearchParams(rescore=True, oversampling=1.0),
        acorn=edge.AcornSearchParams(enable=True, max_selectivity=_SELECTIVE),
    )


def _allowed(query: PointQuery, name: str) -> edge.Filter:
    must: list[edge.ConditionType] = [edge.FieldCondition(key, match=edge.MatchValue(value)) for key, value in query.must]
    left_out = ((AGENT_FIELD, query.exclude), (POOL_FIELD, query.without.get(name, ())))
    return edge.Filter(must=must, must_not=[_any_of(field, values) for field, values in left_out if values] or None)


def _of(agent_ids: Sequence[str]) -> edge.Filter:
    return edge.Filter(must=[_any_of(AGENT_FIELD, agent_ids)])


def _any_of(field: str, values: Sequence[str]) -> edge.ConditionType:
    return edge.FieldCondition(field, match=edge.MatchAny(list(values)))


def _point(record: PointRecord) -> edge.Point:
    named: dict[str, edge.NamedVector] = {name: components(packed).tolist() for name, packed in record.dense.items()}
    if record.terms is not None:
        named[BM25] = _sparse(record.terms)
    return edge.Point(record.point_id, named, dict(record.payload))


def _record(stored: edge.Record) -> PointRecord:
    vectors = stored.vector if isinstance(stored.vector, dict) else {}
    sparse = vectors.pop(BM25, None)
    return PointRecord(
        _number(stored.id),
        {name: packed_vector(cast(Sequence[float], vector)) for name, vector in vectors.items()},
        Terms(tuple(sparse.indices), tuple(sparse.values)) if isinstance(sparse, edge.SparseVector) else None,
        stored.payload or {},
    )


def _number(point_id: edge.PointId) -> int:
    """Return a point's id, which is always a number here."""
    return cast(int, point_id)


def _sparse(terms: Terms) -> edge.SparseVector:
    return edge.SparseVector(list(terms.indices), list(terms.values))
