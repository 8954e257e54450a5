"""The index in a Qdrant server: for clusters, shared by all replicas of discovery.

The collection's name carries the schema and a digest of the model, so that replicas of two releases, or of two models, never
write into each other's vectors during a rolling upgrade.
"""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager

from ioa.errors import MissingExtraError, UnavailableError
from ioa.ports.agent_index import SCHEMA_VERSION, Candidate, Candidates, Indexed, IndexEntry, IndexQuery, Signal, SparseVector
from ioa.protocol.ids import AgentId
from ioa_discovery import points

try:
    from qdrant_client import AsyncQdrantClient, models
    from qdrant_client.http.exceptions import ResponseHandlingException, UnexpectedResponse
except ImportError as error:
    raise MissingExtraError.of("The Qdrant client", "discovery") from error

COLLECTION_PREFIX = "ioa_agents"
MEMORY = ":memory:"
_PAGE_POINTS = 1_000
_WRITE_POINTS = 16
"""Points of one write: the client serialises them on the event loop, a millisecond for each few."""


@asynccontextmanager
async def open_qdrant_index(
    url: str, *, model_id: str, dimension: int, api_key: str | None = None, prefix: str = COLLECTION_PREFIX
) -> AsyncIterator[QdrantIndex]:
    """Connect to a server and create the collection if it is missing.

    Args:
        url: The server, such as `http://qdrant:6333`; `MEMORY` runs the client's own imitation, for tests only.
        model_id: The embedder's model.
        dimension: Its vectors' length.
        api_key: The server's key, if it asks for one.
        prefix: Beginning of the collection's name.

    Raises:
        UnavailableError: The server does not answer.
    """
    # Without a check of the server's version: the client makes it with a blocking request.
    client = AsyncQdrantClient(url) if url == MEMORY else AsyncQdrantClient(url=url, api_key=api_key, check_compatibility=False)
    try:
        collection = collection_name(prefix, model_id)
        with _unavailable():
            await _ensure_collection(client, collection, dimension)
        yield QdrantIndex(client, collection)
    finally:
        await client.close()


@contextmanager
def _unavailable() -> Iterator[None]:
    """Say of an error of the server that a retry can help."""
    try:
        yield
    except (ResponseHandlingException, UnexpectedResponse) as error:
        raise UnavailableError(f"Qdrant does not answer: {error}", hint="Start it, or correct its URL or key.") from error


def collection_name(prefix: str, model_id: str) -> str:
    """Name the collection of one schema and one model."""
    return f"{prefix}_v{SCHEMA_VERSION}_{hashlib.sha256(model_id.encode()).hexdigest()[:12]}"


class QdrantIndex:
    """An `AgentIndex` over one collection. Made by `open_qdrant_index`, which closes the client."""

    def __init__(self, client: AsyncQdrantClient, collection: str) -> None:
        self._client = client
        self._collection = collection

    async def put(self, entries: Sequence[IndexEntry]) -> None:
        """Insert or replace the entries."""
        for start in range(0, len(entries), _WRITE_POINTS):
            batch = [_point(entry) for entry in entries[start : start + _WRITE_POINTS]]
            with _unavailable():
                await self._client.upsert(self._collection, batch, wait=True)

    async def set_online(self, agent_id: AgentId, online: bool) -> None:
        """Record whether an agent is alive."""
        # By filter, since a payload set by id would call a missing point an error.
        here = models.Filter(must=[models.FieldCondition(key="agent_id", match=models.MatchValue(value=agent_id))])
        with _unavailable():
            await self._client.set_payload(self._collection, {points.ONLINE_FIELD: int(online)}, points=here, wait=True)

    async def remove(self, agent_ids: Sequence[AgentId]) -> None:
        """Forget agents."""
        if agent_ids:
            ids: list[models.ExtendedPointId] = [points.point_id(agent_id) for agent_id in agent_ids]
            with _unavailable():
                await self._client.delete(self._collection, models.PointIdsList(points=ids), wait=True)

    async def search(self, queries: Sequence[IndexQuery]) -> Sequence[Candidates]:
        """Ask for all signals of all queries in one request."""
        asked = [(number, signal, request) for number, query in enumerate(queries) for signal, request in _requests(query)]
        requests = [request for _, _, request in asked]
        with _unavailable():
            answers = await self._client.query_batch_points(self._collection, requests) if asked else []
        found: list[dict[Signal, list[Candidate]]] = [{signal: [] for signal in Signal} for _ in queries]
        for (number, signal, _), answer in zip(asked, answers, strict=True):
            found[number][signal] = [points.candidate(point.payload, point.score) for point in answer.points]
        return found

    async def fetch(self, agent_ids: Sequence[AgentId]) -> Mapping[AgentId, IndexEntry]:
        """Return the entries of those agents that are here."""
        ids: list[models.ExtendedPointId] = [points.point_id(agent_id) for agent_id in agent_ids]
        with _unavailable():
            records = await self._client.retrieve(self._collection, ids, with_payload=True, with_vectors=["text", "examples"])
        entries = [points.entry(record.payload, record.vector) for record in records]
        return {entry.card.agent_id: entry for entry in entries}

    async def indexed(self) -> Mapping[AgentId, Indexed]:
        """Return the state of every agent, read page by page."""
        states: dict[AgentId, Indexed] = {}
        offset: models.ExtendedPointId | None = None
        while True:
            with _unavailable():
                records, following = await self._client.scroll(
                    self._collection, limit=_PAGE_POINTS, offset=offset, with_payload=list(points.STATE_FIELDS)
                )
            states.update(points.state(record.payload) for record in records)
            if following is None:
                return states
            offset = following

    async def count(self) -> int:
        """Return how many agents are here."""
        with _unavailable():
            return (await self._client.count(self._collection, exact=True)).count

    async def aclose(self) -> None:
        """Close the connection. Idempotent."""
        await self._client.close()


def _requests(query: IndexQuery) -> list[tuple[Signal, models.QueryRequest]]:
    dense = list(query.dense)
    asked: list[tuple[Signal, list[float] | list[list[float]] | models.SparseVector]]
    asked = [(Signal.TEXT, dense), (Signal.EXAMPLES, [dense])]
    if query.terms.indices:
        asked.append((Signal.BM25, _sparse(query.terms)))
    allowed = _filter(query)
    return [
        (
            signal,
            models.QueryRequest(
                query=vector, using=signal.value, filter=allowed, limit=query.limit, with_payload=list(points.CANDIDATE_FIELDS)
            ),
        )
        for signal, vector in asked
    ]


def _filter(query: IndexQuery) -> models.Filter:
    must: list[models.Condition] = [
        models.FieldCondition(key=key, match=models.MatchValue(value=value)) for key, value in points.must_match(query.filters)
    ]
    excluded: list[models.Condition] = [
        models.FieldCondition(key="agent_id", match=models.MatchAny(any=list(map(str, query.exclude))))
    ]
    return models.Filter(must=must, must_not=excluded if query.exclude else None)


def _point(entry: IndexEntry) -> models.PointStruct:
    named: dict[str, models.Vector] = dict(points.vectors(entry))
    if entry.terms.indices:
        named[Signal.BM25.value] = _sparse(entry.terms)
    return models.PointStruct(id=points.point_id(entry.card.agent_id), vector=named, payload=points.payload(entry))


def _sparse(terms: SparseVector) -> models.SparseVector:
    return models.SparseVector(indices=list(terms.indices), values=list(terms.values))


async def _ensure_collection(client: AsyncQdrantClient, collection: str, dimension: int) -> None:
    """Create the collection; another replica may do so at the same moment, which is as good."""
    if not await client.collection_exists(collection):
        nearest_member = models.MultiVectorConfig(comparator=models.MultiVectorComparator.MAX_SIM)
        cosine = models.Distance.COSINE
        try:
            await client.create_collection(
                collection,
                vectors_config={
                    "text": models.VectorParams(size=dimension, distance=cosine),
                    "examples": models.VectorParams(size=dimension, distance=cosine, multivector_config=nearest_member),
                },
                sparse_vectors_config={"bm25": models.SparseVectorParams(modifier=models.Modifier.IDF)},
            )
        except UnexpectedResponse:
            if not await client.collection_exists(collection):
                raise
    for field in points.KEYWORD_FIELDS:
        await client.create_payload_index(collection, field, models.PayloadSchemaType.KEYWORD)
    await client.create_payload_index(collection, points.ONLINE_FIELD, models.PayloadSchemaType.INTEGER)
