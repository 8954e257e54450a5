"""Which engine holds the index and which model embeds, by what discovery is told."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ioa.ports.embedder import Embedder
from ioa_discovery.embedding.embedder import KeepingEmbedder, open_embedder
from ioa_discovery.index.edge_index import EdgeIndex, prepare_edge_index
from ioa_discovery.settings import DiscoverySettings

if TYPE_CHECKING:
    from ioa_discovery.index.qdrant_index import QdrantIndex

VECTORS_FILE = "vectors.sqlite"


@dataclass(frozen=True, slots=True)
class Engines:
    """What was opened. `embedder` is for needs; `card_embedder` remembers, across restarts, what it has embedded."""

    index: EdgeIndex | QdrantIndex
    embedder: Embedder
    card_embedder: KeepingEmbedder


@asynccontextmanager
async def open_engines(settings: DiscoverySettings, restarted: Callable[[], None]) -> AsyncIterator[Engines]:
    """Load the model and open the index. `restarted` is called when the index's process had died and runs again."""
    file = settings.index_folder / VECTORS_FILE if settings.index_folder is not None else None
    async with AsyncExitStack() as stack:
        prepared = None
        if settings.qdrant_url is None:
            prepared = await stack.enter_async_context(prepare_edge_index(settings.index_folder))
        embedder = await stack.enter_async_context(
            open_embedder(settings.embedding_model, processes=settings.embedding_processes, vectors_file=file)
        )
        model_id, dimension = embedder.model_id, embedder.dimension
        opened: AbstractAsyncContextManager[EdgeIndex | QdrantIndex]
        if prepared is not None:
            opened = prepared.open(model_id=model_id, dimension=dimension, restarted=restarted)
        else:
            opened = _open_server(settings, model_id, dimension)
        yield Engines(await stack.enter_async_context(opened), embedder, KeepingEmbedder(embedder))


def _open_server(settings: DiscoverySettings, model_id: str, dimension: int) -> AbstractAsyncContextManager[QdrantIndex]:
    assert settings.qdrant_url is not None
    # Only where there is a server: the client takes half a second to import.
    from ioa_discovery.index.qdrant_index import open_qdrant_index

    return open_qdrant_index(settings.qdrant_url, model_id=model_id, dimension=dimension, api_key=settings.qdrant_key())
