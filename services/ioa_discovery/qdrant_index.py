"""The index in a Qdrant server, shared by all replicas of discovery.

An agent is a point with the named vectors `text` and `bm25`, and a point for each of its example requests, with the named vector
`examples`. The examples are not one multivector, because the search tree of multivectors misses one hit in five. Every point has
the fields that a search filters by. Each layout and each model has a collection of its own.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager

from ioa.concurrency import TaskGroup
from ioa.errors import MissingExtraError, UnavailableError
from ioa.ports.agent_index import (
    SCHEMA_VERSION,
    Candidate,
    Candidates,
    Indexed,
    IndexEntry,
    IndexQuery,
    Likeness,
    Signal,
    SparseVector,
)
from ioa.ports.embedder import Vector
from ioa.protocol.agents.search import Filters
from ioa.protocol.cards import AgentCard
from ioa.protocol.ids import AgentId

try:
    from qdrant_client import AsyncQdrantClient, models
    from qdrant_client.http.exceptions import ResponseHandlingException, UnexpectedResponse
except ImportError as error:
    raise MissingExtraError.of("The Qdrant client", "discovery") from error

MEMORY = ":memory:"
_PAGE_POINTS = 1_000
_WRITE_POINTS = 16
"""Points per write. The client serialises them on the event loop, in about 0.3 ms each."""
_AGENT_FIELD, _POOL_FIELD, _ONLINE_FIELD, _CARD_FIELD = "agent_id", "pool", "online", "card"
_EXAMPLE_FIELD = "example"
"""Number of the example that a point stores, from 1; 0 for the point of the card."""
_EXAMPLES_PER_AGENT = 50
"""Maximum examples per card."""
_KEYWORD_FIELDS = (_AGENT_FIELD, _POOL_FIELD, "tags", "version")
_CANDIDATE_FIELDS = (_AGENT_FIELD, _POOL_FIELD, "has_examples")
_STATE_FIELDS = (_AGENT_FIELD, "fingerprint", _ONLINE_FIELD)
_POINT_ID_BYTES = 8


@asynccontextmanager
async def open_qdrant_index(url: str, *, model_id: str, dimension: int, api_key: str | None = None) -> AsyncIterator[QdrantIndex]:
    """Connect to a server and create the collection if it is missing.

    Args:
        url: The server, such as `http://qdrant:6333`; `MEMORY` runs the client's local mode, for tests only.
        model_id: The embedder's model.
        dimension: Its vectors' length.
        api_key: The server's key; None if the server needs none.

    Raises:
        UnavailableError: The server does not answer.
    """
    # In a thread: the first client imports HTTP/2. Without a check of the server's version, which is a blocking request.
    options = {"location": url} if url == MEMORY else {"url": url, "api_key": api_key, "check_compatibility": False}
    client = await asyncio.to_thread(lambda: AsyncQdrantClient(**options))
    try:
        collection = collection_name(model_id)
        with _unavailable():
            await _ensure_collection(client, collection, dimension)
        yield QdrantIndex(client, collection)
    finally:
        await client.close()


def collection_name(model_id: str) -> str:
    """Return the name of the collection for this layout and a model."""
    return f"ioa_agents_v{SCHEMA_VERSION}_{hashlib.sha256(model_id.encode()).hexdigest()[:12]}"


@contextmanager
def _unavailable() -> Iterator[None]:
    """Convert an error of the server into an error that a retry can fix."""
    try:
        yield
    except (ResponseHandlingException, UnexpectedResponse) as error:
        raise UnavailableError(f"Qdrant does not answer: {error}", hint="Start it, or correct its URL or key.") from error


class QdrantIndex:
    """An `AgentIndex` over one collection. Created by `open_qdrant_index`, which closes the client."""

    def __init__(self, client: AsyncQdrantClient, collection: str) -> None:
        self._client = client
        self._collection = collection

    async def put(self, entries: Sequence[IndexEntry]) -> None:
        """Insert or replace the entries: write their points first, so that none is missing meanwhile, then delete old examples."""
        written = [point for entry in entries for point in _create_points(entry)]
        with _unavailable():
            for start in range(0, len(written), _WRITE_POINTS):
                await self._client.upsert(self._collection, written[start : start + _WRITE_POINTS], wait=True)
            if outdated := [point_id for entry in entries for point_id in _surplus_ids(entry)]:
                await self._client.delete(self._collection, models.PointIdsList(points=outdated), wait=True)

    async def set_online(self, agent_ids: Sequence[AgentId], online: bool) -> None:
        """Record whether agents are online."""
        if agent_ids:
            payload = {_ONLINE_FIELD: online}
            with _unavailable():
                await self._client.set_payload(
                    self._collection, payload, points=models.Filter(must=[_any_agent(agent_ids)]), wait=True
                )

    async def remove(self, agent_ids: Sequence[AgentId]) -> None:
        """Remove agents. Their words count for the rarity of words until the server optimises its segments."""
        if agent_ids:
            with _unavailable():
                selector = models.FilterSelector(filter=models.Filter(must=[_any_agent(agent_ids)]))
                await self._client.delete(self._collection, selector, wait=True)

    async def search(self, query: IndexQuery) -> Candidates:
        """Send one request for each signal, concurrently."""
        try:
            async with TaskGroup() as group:
                tasks = {signal: group.create_task(self._best(query, signal)) for signal in Signal}
        except BaseExceptionGroup as errors:
            raise errors.exceptions[0] from None
        return {signal: task.result() for signal, task in tasks.items()}

    async def _best(self, query: IndexQuery, signal: Signal) -> list[Candidate]:
        """Return the best agent of each of the best pools by one signal."""
        if signal is Signal.BM25 and not query.terms.indices:
            return []
        with _unavailable():
            found = await self._client.query_points_groups(
                self._collection,
                group_by=_POOL_FIELD,
                query=_sparse(query.terms) if signal is Signal.BM25 else list(query.dense),
                using=signal.value,
                query_filter=_matching(query.filters, query.exclude),
                limit=query.limit,
                group_size=1,
                with_payload=list(_CANDIDATE_FIELDS),
                search_params=models.SearchParams(
                    acorn=models.AcornSearchParams(enable=True), quantization=models.QuantizationSearchParams(rescore=True)
                ),
            )
        return [_candidate(group.hits[0]) for group in found.groups]

    async def compare(self, need: Vector, agent_ids: Sequence[AgentId]) -> Mapping[AgentId, Likeness]:
        """Return the similarity to a need of those agents that are in the index."""
        if not agent_ids:
            return {}
        kinds = ((Signal.TEXT, _CARD_FIELD, 1), (Signal.EXAMPLES, _EXAMPLE_FIELD, _EXAMPLES_PER_AGENT))
        requests = [
            models.QueryRequest(
                query=list(need),
                using=signal.value,
                filter=models.Filter(must=[_any_agent(agent_ids)]),
                limit=len(agent_ids) * most,
                with_payload=[_AGENT_FIELD, field],
                params=models.SearchParams(exact=True),
            )
            for signal, field, most in kinds
        ]
        with _unavailable():
            texts, examples = await self._client.query_batch_points(self._collection, requests)
        nearest: dict[str, models.ScoredPoint] = {}
        for point in examples.points:
            nearest.setdefault(_agent_id(point), point)
        return {_agent_id(point): _likeness(point, nearest.get(_agent_id(point))) for point in texts.points}

    async def indexed(self) -> Mapping[AgentId, Indexed]:
        """Return the state of every agent, read page by page."""
        found: dict[AgentId, Indexed] = {}
        following: models.ExtendedPointId | None = None
        while True:
            with _unavailable():
                page, following = await self._client.scroll(
                    self._collection,
                    _CARDS,
                    limit=_PAGE_POINTS,
                    offset=following,
                    with_payload=list(_STATE_FIELDS),
                    with_vectors=False,
                )
            for fields in [record.payload or {} for record in page]:
                found[AgentId(fields[_AGENT_FIELD])] = Indexed(fields["fingerprint"], fields[_ONLINE_FIELD])
            if following is None:
                return found


_CARDS = models.Filter(must=[models.FieldCondition(key=_EXAMPLE_FIELD, match=models.MatchValue(value=0))])


def _agent_id(point: models.ScoredPoint) -> AgentId:
    return AgentId((point.payload or {})[_AGENT_FIELD])


async def _ensure_collection(client: AsyncQdrantClient, collection: str, dimension: int) -> None:
    """Create the collection unless another replica has created it.

    The search tree holds 8-bit vectors in memory; the full vectors are on disk.
    """
    if not await client.collection_exists(collection):
        vector = models.VectorParams(size=dimension, distance=models.Distance.COSINE, on_disk=True)
        try:
            await client.create_collection(
                collection,
                vectors_config={Signal.TEXT.value: vector, Signal.EXAMPLES.value: vector},
                sparse_vectors_config={Signal.BM25.value: models.SparseVectorParams(modifier=models.Modifier.IDF)},
                quantization_config=models.ScalarQuantization(
                    scalar=models.ScalarQuantizationConfig(type=models.ScalarType.INT8, quantile=0.99, always_ram=True)
                ),
            )
        except UnexpectedResponse:
            if not await client.collection_exists(collection):
                raise
    for field in _KEYWORD_FIELDS:
        await client.create_payload_index(collection, field, models.PayloadSchemaType.KEYWORD)
    await client.create_payload_index(collection, _ONLINE_FIELD, models.PayloadSchemaType.BOOL)
    await client.create_payload_index(collection, _EXAMPLE_FIELD, models.PayloadSchemaType.INTEGER)


def _create_points(entry: IndexEntry) -> list[models.PointStruct]:
    """Return an agent's points."""
    card = entry.card
    filterable = {
        _AGENT_FIELD: card.agent_id,
        _POOL_FIELD: card.pool,
        "tags": list(card.tags),
        "version": card.version,
        _ONLINE_FIELD: entry.online,
        "has_examples": bool(entry.examples),
    }
    whole: dict[str, models.Vector] = {Signal.TEXT.value: list(entry.text)}
    if entry.terms.indices:
        whole[Signal.BM25.value] = _sparse(entry.terms)
    stored = {**filterable, "fingerprint": entry.fingerprint, _CARD_FIELD: card.model_dump_json()}
    examples = [({Signal.EXAMPLES.value: list(vector)}, filterable) for vector in entry.examples]
    return [
        models.PointStruct(id=_point_id(card.agent_id, number), vector=vectors, payload={**payload, _EXAMPLE_FIELD: number})
        for number, (vectors, payload) in enumerate([(whole, stored), *examples])
    ]


def _sparse(terms: SparseVector) -> models.SparseVector:
    """Return terms as the client's sparse vector."""
    return models.SparseVector(indices=list(terms.indices), values=list(terms.values))


def _surplus_ids(entry: IndexEntry) -> list[models.ExtendedPointId]:
    """Return the ids of examples that an earlier card of the agent may have had."""
    return [_point_id(entry.card.agent_id, number) for number in range(len(entry.examples) + 1, _EXAMPLES_PER_AGENT + 1)]


def _point_id(agent_id: AgentId, number: int) -> int:
    return int.from_bytes(hashlib.blake2b(f"{agent_id} {number}".encode(), digest_size=_POINT_ID_BYTES).digest(), "big")


def _matching(filters: Filters, exclude: Sequence[AgentId]) -> models.Filter:
    """Return the filter of the points that a search may find."""
    online = True if filters.online else None
    wanted = [
        (_ONLINE_FIELD, online),
        (_POOL_FIELD, filters.pool),
        ("version", filters.version),
        *(("tags", tag) for tag in filters.tags),
    ]
    must: list[models.Condition] = [
        models.FieldCondition(key=key, match=models.MatchValue(value=value)) for key, value in wanted if value is not None
    ]
    return models.Filter(must=must, must_not=[_any_agent(exclude)] if exclude else None)


def _any_agent(agent_ids: Sequence[AgentId]) -> models.FieldCondition:
    return models.FieldCondition(key=_AGENT_FIELD, match=models.MatchAny(any=list(map(str, agent_ids))))


def _candidate(point: models.ScoredPoint) -> Candidate:
    """Read a candidate from a point that a search found."""
    fields = point.payload or {}
    return Candidate._make((*(fields[name] for name in _CANDIDATE_FIELDS), point.score))


def _likeness(text: models.ScoredPoint, example: models.ScoredPoint | None) -> Likeness:
    """Read an agent's similarity to a need from the point of its card and the point of its nearest example."""
    card = AgentCard.model_validate_json((text.payload or {})[_CARD_FIELD])
    # A search between two writes of a card can find an example that the card no longer has.
    number = (example.payload or {})[_EXAMPLE_FIELD] if example is not None else 0
    matched = "".join(card.examples[max(0, number - 1) : number])
    # The server may round a cosine to slightly more than one.
    similarity = max(text.score, example.score if example is not None else -1.0)
    return Likeness(card, max(-1.0, min(1.0, similarity)), matched)
