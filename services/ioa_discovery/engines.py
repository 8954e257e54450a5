"""Choose the index and the embedding model by the settings."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass

from ioa.ports.agent_index import AgentIndex
from ioa.ports.embedder import Embedder
from ioa_discovery.embedder import CardEmbedder, open_embedder
from ioa_discovery.exact_index import open_exact_index
from ioa_discovery.settings import DiscoverySettings

VECTORS_FILE = "vectors.sqlite"


@dataclass(frozen=True, slots=True)
class Engines:
    """An index, the embedder of needs, and the embedder of cards, which stores their vectors."""

    index: AgentIndex
    embedder: Embedder
    card_embedder: Embedder


@asynccontextmanager
async def open_engines(settings: DiscoverySettings) -> AsyncIterator[Engines]:
    """Load the model and open the index: in a Qdrant server if the settings name one, otherwise in memory."""
    file = settings.vectors_folder / VECTORS_FILE if settings.vectors_folder is not None else None
    async with (
        open_embedder(settings.embedding_model, vectors_file=file) as embedder,
        _open_index(settings, embedder) as index,
    ):
        yield Engines(index, embedder, CardEmbedder(embedder))


def _open_index(settings: DiscoverySettings, embedder: Embedder) -> AbstractAsyncContextManager[AgentIndex]:
    if settings.qdrant_url is None:
        return open_exact_index(embedder.dimension)
    # Imported only if it is used: the client takes half a second to import.
    from ioa_discovery.qdrant_index import open_qdrant_index

    return open_qdrant_index(
        settings.qdrant_url, model_id=embedder.model_id, dimension=embedder.dimension, api_key=settings.qdrant_key()
    )
