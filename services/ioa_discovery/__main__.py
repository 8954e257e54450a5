"""Run one replica of discovery: `python -m ioa_discovery`."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, closing, nullcontext
from functools import partial

from ioa.adapters.nats.wire.connection import open_connection
from ioa.ports.agent_index import AgentIndex
from ioa.ports.embedder import Embedder
from ioa.runtime.process import StopSignal, run_process
from ioa_discovery.answering import Engines, open_answering
from ioa_discovery.embedding_model import open_embedder
from ioa_discovery.exact_index import ExactIndex
from ioa_discovery.settings import DiscoverySettings
from ioa_discovery.vector_store import StoredEmbedder

VECTORS_FILE = "vectors.sqlite"

SETTINGS = DiscoverySettings


@asynccontextmanager
async def open_engines(settings: DiscoverySettings) -> AsyncIterator[Engines]:
    """Load the model and open the index: in a Qdrant server if the settings name one, otherwise in memory."""
    folder = settings.vectors_folder
    async with open_embedder(settings.embedding_model) as embedder, _open_index(settings, embedder) as index:
        if folder is None:
            yield Engines(index, embedder, card_embedder=embedder)
            return
        with closing(StoredEmbedder(embedder, folder / VECTORS_FILE)) as card_embedder:
            yield Engines(index, embedder, card_embedder)


def _open_index(settings: DiscoverySettings, embedder: Embedder) -> AbstractAsyncContextManager[AgentIndex]:
    if settings.qdrant_url is None:
        return nullcontext(ExactIndex(embedder.dimension))
    # Imported only if it is used: the client takes half a second to import.
    from ioa_discovery.qdrant_index import open_qdrant_index

    return open_qdrant_index(
        settings.qdrant_url, model_id=embedder.model_id, dimension=embedder.dimension, api_key=settings.qdrant_api_key
    )


async def serve(settings: DiscoverySettings, stop: StopSignal) -> None:
    """Answer searches until `stop` is set."""
    async with (
        open_connection(settings.nats("ioa-discovery")) as client,
        open_answering(client, settings, partial(open_engines, settings)),
    ):
        await stop.wait()


if __name__ == "__main__":
    run_process(SETTINGS, serve)
