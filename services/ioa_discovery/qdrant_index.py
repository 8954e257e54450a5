"""The index in a Qdrant server, shared by all replicas of discovery.

The collection's name contains the layout and a digest of the model, so that replicas of two releases, or of two models, never
write into each other's vectors during a rolling upgrade.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager

from ioa.cancellation import TaskGroup
from ioa.errors import MissingExtraError, UnavailableError
from ioa.ports.agent_index import SCHEMA_VERSION, Candidate, Candidates, Indexed, IndexEntry, IndexQuery, Likeness, Signal
from ioa.ports.embedder import Vector
from ioa.protocol.ids import AgentId

try:
    from qdrant_client import AsyncQdrantClient, models
    from qdrant_client.http.exceptions import ResponseHandlingException, UnexpectedResponse
except ImportError as error:
    raise MissingExtraError.of("The Qdrant client", "discovery") from error

from ioa_discovery import points

MEMORY = ":memory:"
_PAGE_POINTS = 1_000
_WRITE_POINTS = 16
"""Points per write. The client serialises them on the event loop, in about 0.3 ms each."""
_EXACT_BELOW_POINTS = 20_000
"""Matching points up to which the server compares all of them."""
_BYTES_PER_COMPONENT = 4


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
    # In a thread: the first client imports HTTP/2, which takes a quarter of a second on a busy machine.
    client = await asyncio.to_thread(_client, url, api_key)
    try:
        collection = collection_name(model_id)
        with _unavailable():
            await _ensure_collection(client, collection, dimension)
        yield QdrantIndex(client, collection)
    finally:
        await client.close()


def collection_name(model_id: str) -> str:
    """Return the name of the collection for this layout and a model."""
    return f"ioa_agents_v{SCHEMA_VERSION}_{points.LAYOUT}_{hashlib.sha256(model_id.encode()).hexdigest()[:12]}"


def _client(url: str, api_key: str | None) -> AsyncQdrantClient:
    # Without a check of the server's version: the client makes it with a blocking request.
    return AsyncQdrantClient(url) if url == MEMORY else AsyncQdrantClient(url=url, api_key=api_key, check_compatibility=False)


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
        written = [point for entry in entries for point in points.create_points(entry)]
        with _unavailable():
            for start in range(0, len(written), _WRITE_POINTS):
                await self._client.upsert(self._collection, written[start : start + _WRITE_POINTS], wait=True)
            if outdated := [point_id for entry in entries for point_id in points.surplus_ids(entry)]:
                await self._client.delete(self._collection, models.PointIdsList(points=outdated), wait=True)

    async def set_online(self, agent_ids: Sequence[AgentId], online: bool) -> None:
        """Record whether agents are online."""
        if agent_ids:
            payload = {points.ONLINE_FIELD: online}
            with _unavailable():
                await self._client.set_payload(self._collection, payload, points=points.of_agents(agent_ids), wait=True)

    async def remove(self, agent_ids: Sequence[AgentId]) -> None:
        """Remove agents. Their words count for the rarity of words until the server optimises its segments."""
        if agent_ids:
            with _unavailable():
                selector = models.FilterSelector(filter=points.of_agents(agent_ids))
                await self._client.delete(self._collection, selector, wait=True)

    async def search(self, queries: Sequence[IndexQuery]) -> Sequence[Candidates]:
        """Send one request for each signal of each query, concurrently."""
        try:
            async with TaskGroup() as group:
                tasks = [{signal: group.create_task(self._best(query, signal)) for signal in Signal} for query in queries]
        except BaseExceptionGroup as errors:
            raise errors.exceptions[0] from None
        return [{signal: task.result() for signal, task in of_query.items()} for of_query in tasks]

    async def _best(self, query: IndexQuery, signal: Signal) -> list[Candidate]:
        """Return the best agent of each of the best pools by one signal."""
        if signal is Signal.BM25 and not query.terms.indices:
            return []
        with _unavailable():
            found = await self._client.query_points_groups(
                self._collection,
                group_by=points.POOL_FIELD,
                query=points.sparse(query.terms) if signal is Signal.BM25 else list(query.dense),
                using=signal.value,
                query_filter=points.matching(query.filters, query.exclude),
                limit=query.limit,
                group_size=1,
                with_payload=list(points.CANDIDATE_FIELDS),
                search_params=models.SearchParams(
                    acorn=models.AcornSearchParams(enable=True), quantization=models.QuantizationSearchParams(rescore=True)
                ),
            )
        return [points.candidate(group.hits[0]) for group in found.groups]

    async def compare(self, need: Vector, agent_ids: Sequence[AgentId]) -> Mapping[AgentId, Likeness]:
        """Return the similarity to a need of those agents that are in the index."""
        if not agent_ids:
            return {}
        kinds = ((Signal.TEXT, points.CARD_FIELD, 1), (Signal.EXAMPLES, points.EXAMPLE_FIELD, points.EXAMPLES_PER_AGENT))
        requests = [
            models.QueryRequest(
                query=list(need),
                using=signal.value,
                filter=points.of_agents(agent_ids),
                limit=len(agent_ids) * most,
                with_payload=[points.AGENT_FIELD, field],
                params=models.SearchParams(exact=True),
            )
            for signal, field, most in kinds
        ]
        with _unavailable():
            texts, examples = await self._client.query_batch_points(self._collection, requests)
        nearest: dict[str, models.ScoredPoint] = {}
        for point in examples.points:
            nearest.setdefault(_agent_id(point), point)
        return {_agent_id(point): points.likeness(point, nearest.get(_agent_id(point))) for point in texts.points}

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
                    with_payload=list(points.STATE_FIELDS),
                    with_vectors=False,
                )
            found.update(points.state(record.payload) for record in page)
            if following is None:
                return found


_CARDS = models.Filter(must=[models.FieldCondition(key=points.EXAMPLE_FIELD, match=models.MatchValue(value=0))])


def _agent_id(point: models.ScoredPoint) -> AgentId:
    return AgentId((point.payload or {})[points.AGENT_FIELD])


async def _ensure_collection(client: AsyncQdrantClient, collection: str, dimension: int) -> None:
    """Create the collection unless another replica has created it.

    The search tree holds 8-bit vectors in memory; the full vectors are on disk. Below `_EXACT_BELOW_POINTS` matching points the
    server compares all of them.
    """
    if not await client.collection_exists(collection):
        vector = models.VectorParams(size=dimension, distance=models.Distance.COSINE, on_disk=True)
        threshold = _EXACT_BELOW_POINTS * dimension * _BYTES_PER_COMPONENT // 1024
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
    await client.create_payload_index(collection, points.ONLINE_FIELD, models.PayloadSchemaType.BOOL)
    await client.create_payload_index(collection, points.EXAMPLE_FIELD, models.PayloadSchemaType.INTEGER)
