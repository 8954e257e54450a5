"""The index in a Qdrant server: for clusters, shared by all replicas of discovery.

The collection's name carries the schema and a digest of the model, so that replicas of two releases, or of two models, never
write into each other's vectors during a rolling upgrade.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager

from ioa.errors import MissingExtraError, UnavailableError
from ioa.ports.agent_index import SCHEMA_VERSION, Candidate, Candidates, Indexed, IndexEntry, IndexQuery, Likeness, Signal
from ioa.ports.embedder import Vector
from ioa.protocol.ids import AgentId
from ioa_discovery.index import points
from ioa_discovery.index.shard_requests import (
    AGENT_FIELD,
    CARD_FIELD,
    EXACT_BELOW_POINTS,
    EXAMPLE_FIELD,
    EXAMPLES_PER_AGENT,
    POINTS_PER_AGENT,
    POOL_FIELD,
    WIDER,
    Nearness,
    PointRecord,
)
from ioa_discovery.vectors import components

try:
    from qdrant_client import AsyncQdrantClient, models
    from qdrant_client.http.exceptions import ResponseHandlingException, UnexpectedResponse
except ImportError as error:
    raise MissingExtraError.of("The Qdrant client", "discovery") from error

MEMORY = ":memory:"
_PAGE_POINTS = 1_000
_WRITE_POINTS = 16
"""Points of one write: the client serialises them on the event loop, a millisecond for each few."""
_BYTES_PER_COMPONENT = 4


@asynccontextmanager
async def open_qdrant_index(url: str, *, model_id: str, dimension: int, api_key: str | None = None) -> AsyncIterator[QdrantIndex]:
    """Connect to a server and create the collection if it is missing.

    Args:
        url: The server, such as `http://qdrant:6333`; `MEMORY` runs the client's own imitation, for tests only.
        model_id: The embedder's model.
        dimension: Its vectors' length.
        api_key: The server's key, if it asks for one.

    Raises:
        UnavailableError: The server does not answer.
    """
    # In a thread: the first client imports HTTP/2, which takes a quarter of a second on a busy machine.
    client = await asyncio.to_thread(_client, url, api_key)
    try:
        collection = _collection_name(model_id)
        with _unavailable():
            await _ensure_collection(client, collection, dimension)
        yield QdrantIndex(client, collection)
    finally:
        await client.close()


def _client(url: str, api_key: str | None) -> AsyncQdrantClient:
    # Without a check of the server's version: the client makes it with a blocking request.
    return AsyncQdrantClient(url) if url == MEMORY else AsyncQdrantClient(url=url, api_key=api_key, check_compatibility=False)


@contextmanager
def _unavailable() -> Iterator[None]:
    """Say of an error of the server that a retry can help."""
    try:
        yield
    except (ResponseHandlingException, UnexpectedResponse) as error:
        raise UnavailableError(f"Qdrant does not answer: {error}", hint="Start it, or correct its URL or key.") from error


def _collection_name(model_id: str) -> str:
    """Name the collection of one schema and one model."""
    return f"ioa_agents_v{SCHEMA_VERSION}_{points.LAYOUT}_{hashlib.sha256(model_id.encode()).hexdigest()[:12]}"


class QdrantIndex:
    """An `AgentIndex` over one collection. Made by `open_qdrant_index`, which closes the client."""

    def __init__(self, client: AsyncQdrantClient, collection: str) -> None:
        self._client = client
        self._collection = collection
        self.last_query: IndexQuery | None = None

    async def put(self, entries: Sequence[IndexEntry]) -> None:
        """Insert or replace the entries: what they have now first, so that none is missing meanwhile, then drop what they had."""
        if not entries:
            return
        written = [point for entry in entries for point in points.records(entry)]
        with _unavailable():
            for start in range(0, len(written), _WRITE_POINTS):
                batch = [_point(record) for record in written[start : start + _WRITE_POINTS]]
                await self._client.upsert(self._collection, batch, wait=True)
        current = {record.point_id for record in written}
        for start in range(0, len(entries), _WRITE_POINTS):
            agent_ids = [entry.card.agent_id for entry in entries[start : start + _WRITE_POINTS]]
            await self._drop_outdated(agent_ids, current)

    async def set_online(self, agent_ids: Sequence[AgentId], online: bool) -> None:
        """Record whether agents are alive."""
        if agent_ids:
            payload = {points.ONLINE_FIELD: int(online)}
            with _unavailable():
                await self._client.set_payload(self._collection, payload, points=_of(agent_ids), wait=True)

    async def remove(self, agent_ids: Sequence[AgentId]) -> None:
        """Forget agents."""
        if agent_ids:
            with _unavailable():
                await self._client.delete(self._collection, models.FilterSelector(filter=_of(agent_ids)), wait=True)

    async def search(self, queries: Sequence[IndexQuery], *, exact: bool = False) -> Sequence[Candidates]:
        """Ask for all signals of all queries in one request; `exact` never goes through the search tree."""
        asked = [(number, signal, query) for number, query in enumerate(queries) for signal in Signal if _has(query, signal)]
        found: list[dict[Signal, list[Candidate]]] = [{signal: [] for signal in Signal} for _ in queries]
        wider = 1
        while asked:
            requests = [_request(query, signal, wider, exact=exact) for _, signal, query in asked]
            with _unavailable():
                answers = await self._client.query_batch_points(self._collection, requests)
            again = []
            for (number, signal, query), request, answer in zip(asked, requests, answers, strict=True):
                agents = _best_of_agents(answer.points)
                found[number][signal] = agents[: query.limit]
                if len(agents) < query.limit and len(answer.points) == request.limit:
                    again.append((number, signal, query))
            asked, wider = again, wider * WIDER
        self.last_query = next((query for query in reversed(queries) if query.dense is not None), self.last_query)
        return found

    async def compare(self, need: Vector, agent_ids: Sequence[AgentId]) -> Mapping[AgentId, Likeness]:
        """Return how near a need those of the agents are that are here."""
        if not agent_ids:
            return {}
        kinds = ((Signal.TEXT, CARD_FIELD, 1), (Signal.EXAMPLES, EXAMPLE_FIELD, EXAMPLES_PER_AGENT))
        requests = [
            models.QueryRequest(
                query=list(need),
                using=signal.value,
                filter=_of(agent_ids),
                limit=len(agent_ids) * most,
                with_payload=[AGENT_FIELD, field],
                params=models.SearchParams(exact=True),
            )
            for signal, field, most in kinds
        ]
        with _unavailable():
            texts, examples = await self._client.query_batch_points(self._collection, requests)
        matched: dict[str, tuple[float, int]] = {}
        for point in examples.points:
            payload = point.payload or {}
            matched.setdefault(payload[AGENT_FIELD], (point.score, payload[EXAMPLE_FIELD]))
        found = [(point.payload or {}, point.score) for point in texts.points]
        return {
            AgentId(payload[AGENT_FIELD]): points.likeness(
                Nearness(payload[CARD_FIELD], score, *matched.get(payload[AGENT_FIELD], (-1.0, 0)))
            )
            for payload, score in found
        }

    async def indexed(self) -> Mapping[AgentId, Indexed]:
        """Return the state of every agent, read page by page."""
        return dict([points.state(record.payload) async for record in self._scroll(_AGENTS)])

    async def count(self) -> int:
        """Return how many agents are here."""
        with _unavailable():
            return (await self._client.count(self._collection, count_filter=_AGENTS, exact=True)).count

    async def aclose(self) -> None:
        """Do nothing: the server keeps what it has, and `open_qdrant_index` closes the connection."""

    async def _drop_outdated(self, agent_ids: Sequence[AgentId], current: set[int]) -> None:
        """Delete the points of examples that agents have no more."""
        outdated: list[models.ExtendedPointId] = [
            record.id async for record in self._scroll(_of(agent_ids)) if record.id not in current
        ]
        if outdated:
            with _unavailable():
                await self._client.delete(self._collection, models.PointIdsList(points=outdated), wait=True)

    async def _scroll(self, chosen: models.Filter) -> AsyncIterator[models.Record]:
        following: models.ExtendedPointId | None = None
        while True:
            with _unavailable():
                page, following = await self._client.scroll(
                    self._collection,
                    chosen,
                    limit=_PAGE_POINTS,
                    offset=following,
                    with_payload=list(points.STATE_FIELDS),
                    with_vectors=False,
                )
            for record in page:
                yield record
            if following is None:
                return


_AGENTS = models.Filter(must=[models.FieldCondition(key=EXAMPLE_FIELD, match=models.MatchValue(value=0))])


def _has(query: IndexQuery, signal: Signal) -> bool:
    return bool(query.terms.indices) if signal is Signal.BM25 else query.dense is not None


def _request(query: IndexQuery, signal: Signal, wider: int, *, exact: bool) -> models.QueryRequest:
    """Ask for the best points by one signal; for more than agents are wanted where an agent has many points."""
    nearest = _sparse(query.terms.indices, query.terms.values) if signal is Signal.BM25 else list(query.dense or ())
    return models.QueryRequest(
        query=nearest,
        using=signal.value,
        filter=_filter(query, signal),
        limit=query.limit * wider * (POINTS_PER_AGENT if signal is Signal.EXAMPLES else 1),
        with_payload=list(points.CANDIDATE_FIELDS),
        params=models.SearchParams(
            exact=exact, acorn=models.AcornSearchParams(enable=True), quantization=models.QuantizationSearchParams(rescore=True)
        ),
    )


def _best_of_agents(found: Sequence[models.ScoredPoint]) -> list[Candidate]:
    """Return each agent by its best point."""
    best: dict[AgentId, Candidate] = {}
    for point in found:
        payload = point.payload or {}
        candidate = Candidate._make((*(payload[field] for field in points.CANDIDATE_FIELDS), point.score))
        best.setdefault(candidate.agent_id, candidate)
    return list(best.values())


def _filter(query: IndexQuery, signal: Signal) -> models.Filter:
    must: list[models.Condition] = [
        models.FieldCondition(key=key, match=models.MatchValue(value=value)) for key, value in points.must_match(query.filters)
    ]
    left_out = ((AGENT_FIELD, query.exclude), (POOL_FIELD, query.without.get(signal, ())))
    return models.Filter(must=must, must_not=[_any_of(field, values) for field, values in left_out if values])


def _of(agent_ids: Sequence[AgentId]) -> models.Filter:
    return models.Filter(must=[_any_of(AGENT_FIELD, agent_ids)])


def _any_of(field: str, values: Sequence[str]) -> models.FieldCondition:
    return models.FieldCondition(key=field, match=models.MatchAny(any=list(map(str, values))))


def _point(record: PointRecord) -> models.PointStruct:
    named: dict[str, models.Vector] = {name: components(packed).tolist() for name, packed in record.dense.items()}
    if record.terms is not None:
        named[Signal.BM25.value] = _sparse(record.terms.indices, record.terms.values)
    return models.PointStruct(id=record.point_id, vector=named, payload=dict(record.payload))


def _sparse(indices: Sequence[int], values: Sequence[float]) -> models.SparseVector:
    return models.SparseVector(indices=list(indices), values=list(values))


async def _ensure_collection(client: AsyncQdrantClient, collection: str, dimension: int) -> None:
    """Create the collection; another replica may do so at the same moment, which is as good.

    The search tree holds 8-bit vectors in memory, the vectors themselves lie on disk. It is searched from so many matching
    points on; below, the server compares all of them.
    """
    if not await client.collection_exists(collection):
        vector = models.VectorParams(size=dimension, distance=models.Distance.COSINE, on_disk=True)
        threshold = EXACT_BELOW_POINTS * dimension * _BYTES_PER_COMPONENT // 1024
        try:
            await client.create_collection(
                collection,
                vectors_config={Signal.TEXT.value: vector, Signal.EXAMPLES.value: vector},
                sparse_vectors_config={Signal.BM25.value: models.SparseVectorParams(modifier=models.Modifier.IDF)},
                hnsw_config=models.HnswConfigDiff(full_scan_threshold=threshold),
                optimizers_config=models.OptimizersConfigDiff(indexing_threshold=threshold),
                quantization_config=models.ScalarQuantization(
                    scalar=models.ScalarQuantizationConfig(type=models.ScalarType.INT8, quantile=0.99, always_ram=True)
                ),
            )
        except UnexpectedResponse:
            if not await client.collection_exists(collection):
                raise
    for field in points.KEYWORD_FIELDS:
        await client.create_payload_index(collection, field, models.PayloadSchemaType.KEYWORD)
    for field in (points.ONLINE_FIELD, EXAMPLE_FIELD):
        await client.create_payload_index(collection, field, models.PayloadSchemaType.INTEGER)
