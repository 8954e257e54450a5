"""An open shard of Qdrant's engine, as the process that owns it uses it. Every call blocks, and holds the GIL.

Below `exact_below` matching points a search compares all of them, which is as fast as the search tree there and never wrong.
Above, it goes through the tree, which knows links between points of one pool; for other filters that leave little, the engine
is told to look further (ACORN), since a plain walk through the tree would end among points that do not match.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from ioa_discovery.shard_requests import (
    AGENT_FIELD,
    BM25,
    EXACT_BELOW_POINTS,
    EXAMPLE_FIELD,
    EXAMPLES,
    POINTS_PER_AGENT,
    TEXT,
    WIDER,
    Face,
    Found,
    PointQuery,
    PointRecord,
    ScrollAgents,
    Terms,
    components,
    packed_vector,
)

try:
    import qdrant_edge as edge
except ImportError as error:
    from ioa.errors import MissingExtraError

    raise MissingExtraError.of("The in-process index", "discovery") from error

_MAX_FACES = 1_000_000
_BREADTH = 128
_OVERSAMPLING = 1.5
_SELECTIVE = 0.4
_BYTES_PER_COMPONENT = 4
_CACHED_BELOW_POINTS = 500_000
_LINKED_FIELD = "pool"
_SEGMENTS = 2


@dataclass(frozen=True, slots=True)
class TreeSettings:
    """How a search tree is built: links per point, breadth of the search for them, and from how many points on it is."""

    links: int = 16
    breadth: int = 100
    from_points: int = EXACT_BELOW_POINTS
    threads: int = 0


class Shard:
    """A shard that is open.

    Args:
        engine: The engine's own handle.
        fields: The payload that candidates come with; the first is the agent's id.
        exact_below: Up to how many matching points everything is compared.
    """

    def __init__(self, engine: edge.EdgeShard, fields: Sequence[str], *, exact_below: int = EXACT_BELOW_POINTS) -> None:
        self._engine = engine
        self._fields = list(fields)
        self._exact_below = exact_below
        self._faces: dict[int, Face] = {}

    def put(self, agent_ids: Sequence[str], records: Sequence[PointRecord]) -> None:
        """Replace all points of some agents."""
        self.delete(agent_ids)
        self._engine.update(edge.UpdateOperation.upsert_points([_point(record) for record in records]))

    def set_payload(self, agent_ids: Sequence[str], payload: Mapping[str, object]) -> None:
        """Set some payload of all points of some agents. By filter: by id it would be kept for points that do not exist."""
        self._engine.update(edge.UpdateOperation.set_payload_by_filter(_of(agent_ids), dict(payload)))

    def delete(self, agent_ids: Sequence[str]) -> None:
        """Forget agents."""
        for record in self._scroll(edge.ScrollRequest(limit=_MAX_FACES, filter=_of(agent_ids), with_payload=False)):
            self._faces.pop(_number(record.id), None)
        self._engine.update(edge.UpdateOperation.delete_points_by_filter(_of(agent_ids)))

    def search(self, query: PointQuery, *, exact: bool = False) -> Found:
        """Return the best agents by each signal that the query has."""
        dense = components(query.dense).tolist()
        asked: dict[str, edge.Query] = {name: edge.Query.Nearest(dense, using=name) for name in (TEXT, EXAMPLES)}
        if query.terms is not None:
            asked[BM25] = edge.Query.Nearest(_sparse(query.terms), using=BM25)
        exact = exact or self.points() <= self._exact_below
        return {name: self._best(name, nearest, query, exact=exact) for name, nearest in asked.items()}

    def fetch(self, agent_ids: Sequence[str]) -> list[PointRecord]:
        """Return all points of some agents."""
        request = edge.ScrollRequest(limit=_MAX_FACES, filter=_of(agent_ids), with_payload=True, with_vector=True)
        return [_record(record) for record in self._scroll(request)]

    def page(self, request: ScrollAgents) -> tuple[list[Mapping[str, Any]], int | None]:
        """Return the payload of a page of agents, and where the next page begins."""
        agents = edge.Filter(must=[_AGENTS])
        asked = edge.ScrollRequest(
            offset=request.offset, limit=request.limit, filter=agents, with_payload=list(request.fields), with_vector=False
        )
        records, offset = self._engine.scroll(asked)
        return [record.payload or {} for record in records], None if offset is None else _number(offset)

    def count(self) -> int:
        """Return how many agents there are."""
        return self._engine.count(edge.CountRequest(filter=edge.Filter(must=[_AGENTS]), exact=True))

    def points(self) -> int:
        """Return how many points there are."""
        return self._engine.info().points_count

    def build_tree(self) -> None:
        """Build the search tree over what has none yet, and merge what has grown apart."""
        self._engine.optimize()
        self._engine.flush()

    def flush(self) -> None:
        """Bring everything to disk."""
        self._engine.flush()

    def close(self) -> None:
        """Bring everything to disk and let go of it."""
        self._engine.flush()
        self._engine.close()

    def _best(self, name: str, nearest: edge.Query, query: PointQuery, *, exact: bool) -> list[tuple[Face, float]]:
        """Return the best agents by one signal. An agent has many examples: its best one counts, and more points are asked for."""
        must: list[edge.ConditionType] = [edge.FieldCondition(key, match=edge.MatchValue(value)) for key, value in query.must]
        excluded = _of(query.exclude).must if query.exclude else None
        params = _EXACT if exact or self._is_small(name, must) else _APPROXIMATE
        limit = query.limit * (POINTS_PER_AGENT if name == EXAMPLES else 1)
        while True:
            request = edge.QueryRequest(
                limit=limit, query=nearest, filter=edge.Filter(must=must, must_not=excluded), params=params, with_payload=False
            )
            points = self._engine.query(request)
            agents: dict[str, tuple[Face, float]] = {}
            for point in points:
                face = self._face(_number(point.id), points)
                agents.setdefault(face[0], (face, point.score))
            if len(agents) >= query.limit or len(points) < limit:
                return list(agents.values())[: query.limit]
            limit *= WIDER

    def _is_small(self, name: str, must: Sequence[edge.ConditionType]) -> bool:
        matching = edge.Filter(must=[*must, _WITH_EXAMPLE if name == EXAMPLES else _AGENTS])
        return self._engine.count(edge.CountRequest(filter=matching, exact=False)) <= self._exact_below

    def _face(self, point_id: int, points: Sequence[edge.ScoredPoint]) -> Face:
        """Return a point's payload from memory: reading it from the store takes longer than finding the point."""
        face = self._faces.get(point_id)
        if face is None:
            missing: list[edge.PointId] = [point.id for point in points if point.id not in self._faces]
            if len(self._faces) + len(missing) > _MAX_FACES:
                self._faces.clear()
                missing = [point.id for point in points]
            for record in self._engine.retrieve(missing, with_payload=self._fields, with_vector=False):
                payload = record.payload or {}
                self._faces[_number(record.id)] = tuple(payload[field] for field in self._fields)
            face = self._faces[point_id]
        return face

    def _scroll(self, request: edge.ScrollRequest) -> list[edge.Record]:
        records, _ = self._engine.scroll(request)
        return records


_EXACT = edge.SearchParams(exact=True)
_APPROXIMATE = edge.SearchParams(
    hnsw_ef=_BREADTH,
    quantization=edge.QuantizationSearchParams(rescore=True, oversampling=_OVERSAMPLING),
    acorn=edge.AcornSearchParams(enable=True, max_selectivity=_SELECTIVE),
)
_AGENTS = edge.FieldCondition(EXAMPLE_FIELD, match=edge.MatchValue(0))
_WITH_EXAMPLE = edge.FieldCondition(EXAMPLE_FIELD, range=edge.RangeFloat(gte=1))


def create_engine(
    path: str, dimension: int, keywords: Sequence[str], flag: str, *, tree: TreeSettings | None = None, wal: bool = True
) -> edge.EdgeShard:
    """Create an empty shard in an empty folder.

    Args:
        path: The folder.
        dimension: The vectors' length.
        keywords: Payload that is filtered by; `flag` is so too, and is 0 or 1.
        flag: See `keywords`.
        tree: How `build_tree` shall build a search tree; usually it does so beside, in a copy that is loaded for that.
        wal: Whether what was written is there after the process was killed; else only what was flushed is.
    """
    engine = edge.EdgeShard.create(path, _config(dimension, tree, wal=wal))
    create = edge.UpdateOperation.create_field_index
    for field in keywords:
        # Links within pools alone: those of other fields would cost more to build than looking further costs a search.
        engine.update(create(field, edge.KeywordIndexParams(enable_hnsw=field == _LINKED_FIELD)))
    for field, is_ranged in ((flag, False), (EXAMPLE_FIELD, True)):
        engine.update(create(field, edge.IntegerIndexParams(lookup=True, range=is_ranged, enable_hnsw=False)))
    engine.flush()
    return engine


def load_engine(path: str) -> edge.EdgeShard:
    """Open a shard as it was left."""
    return edge.EdgeShard.load(path)


def load_for_building(path: str, dimension: int, points: int, tree: TreeSettings) -> edge.EdgeShard:
    """Open a shard of so many points with settings by which `build_tree` builds a search tree."""
    memory = edge.Memory.Cached if points < _CACHED_BELOW_POINTS else edge.Memory.Cold
    return edge.EdgeShard.load(path, _config(dimension, tree, memory=memory))


def _config(
    dimension: int, tree: TreeSettings | None, *, memory: edge.Memory | None = None, wal: bool | None = None
) -> edge.EdgeConfig:
    """Describe a shard.

    A search tree holds 8-bit vectors in memory. The vectors themselves, by which it scores again what it found, lie in files
    that the system keeps in memory as far as there is room, and reads ahead where `memory` is not cold.
    """
    settings = quantization = optimizers = None
    if tree is not None:
        kilobytes = max(1, tree.from_points * dimension * _BYTES_PER_COMPONENT // 1024)
        settings = edge.HnswIndexConfig(
            m=tree.links,
            payload_m=tree.links,
            ef_construct=tree.breadth,
            full_scan_threshold=kilobytes,
            max_indexing_threads=tree.threads,
        )
        quantization = edge.ScalarQuantizationConfig(edge.ScalarType.Int8, quantile=0.99, always_ram=True)
        optimizers = edge.EdgeOptimizersConfig(indexing_threshold=kilobytes, default_segment_number=_SEGMENTS)
    vector = edge.EdgeVectorParams(
        dimension, edge.Distance.Cosine, hnsw_config=settings, quantization_config=quantization, memory=memory
    )
    return edge.EdgeConfig(
        vectors={TEXT: vector, EXAMPLES: vector},
        sparse_vectors={BM25: edge.EdgeSparseVectorParams(modifier=edge.Modifier.Idf)},
        optimizers=optimizers,
        wal_enabled=wal,
    )


def _of(agent_ids: Sequence[str]) -> edge.Filter:
    return edge.Filter(must=[edge.FieldCondition(AGENT_FIELD, match=edge.MatchAny(list(agent_ids)))])


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
