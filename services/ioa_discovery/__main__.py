"""Run one replica of discovery: `python -m ioa_discovery`."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path

from pydantic import Field

from ioa.adapters.nats_buckets import NatsRegistryView
from ioa.adapters.nats_connection import open_connection
from ioa.adapters.nats_log import NatsGroupLog
from ioa.adapters.nats_outcomes import NatsOutcomes
from ioa.adapters.nats_requests import Endpoint, answer, answer_as, open_service
from ioa.adapters.system_clock import SystemClock
from ioa.errors import MissingExtraError
from ioa.ports.agent_index import AgentIndex
from ioa.ports.embedder import Embedder
from ioa.protocol import subjects
from ioa.protocol.outcomes import ReportOutcomes
from ioa.protocol.search import AskIndexStatus, IndexStatus, Search
from ioa.runtime.control_plane import ControlPlaneSettings
from ioa.runtime.process import StopSignal, background, run_process
from ioa_discovery.assessment import Assessor
from ioa_discovery.embedding import Encoder, open_embedder
from ioa_discovery.experience import Experience
from ioa_discovery.indexer import Indexer
from ioa_discovery.registry_feed import RegistryFeed
from ioa_discovery.replicas import Replicas
from ioa_discovery.searcher import Searcher


class DiscoverySettings(ControlPlaneSettings):
    """What discovery is told besides what every service is."""

    qdrant_url: str | None = Field(default=None, description="a Qdrant server; without one the engine runs in this process")
    qdrant_api_key: str | None = None
    index_folder: Path | None = Field(default=None, description="where the engine in this process keeps its index")
    embedding_model: str | None = Field(
        default=None,
        description="a folder with model.onnx and tokenizer.json, or a sentence-transformers model; none: the light one",
    )


def choose_encoder(model: str | None) -> Callable[[], Encoder]:
    """Choose the embedding model; it is loaded later, in its own thread."""
    if model is not None and not (Path(model) / "model.onnx").exists():
        from ioa_discovery.torch_encoder import SentenceTransformerEncoder

        return lambda: SentenceTransformerEncoder(model)
    try:
        from ioa_discovery.onnx_encoder import OnnxEncoder
    except ImportError as error:
        raise MissingExtraError.of("Discovery", "discovery") from error
    return OnnxEncoder.of_package if model is None else lambda: OnnxEncoder.of_folder(Path(model))


def choose_index(settings: DiscoverySettings, embedder: Embedder) -> AbstractAsyncContextManager[AgentIndex]:
    """Choose where the index lies: on a Qdrant server, or in this process."""
    if settings.qdrant_url is not None:
        from ioa_discovery.qdrant_index import open_qdrant_index

        return open_qdrant_index(
            settings.qdrant_url,
            model_id=embedder.model_id,
            dimension=embedder.dimension,
            api_key=settings.qdrant_api_key,
        )
    from ioa_discovery.edge_index import open_edge_index

    return open_edge_index(model_id=embedder.model_id, dimension=embedder.dimension, folder=settings.index_folder)


async def serve(settings: DiscoverySettings, stop: StopSignal) -> None:
    """Answer searches until `stop` is set. The index is brought in line with the registry first."""
    async with (
        open_connection(settings.nats("ioa-discovery")) as client,
        open_embedder(choose_encoder(settings.embedding_model)) as embedder,
        choose_index(settings, embedder) as index,
    ):
        view = NatsRegistryView(client)
        feed = RegistryFeed(view)
        replicas = Replicas(view)
        view.listen(replicas.touch)
        clock, outcomes = SystemClock(), NatsOutcomes(client)
        experience = Experience(clock)
        assessor = Assessor(NatsGroupLog(client), view, outcomes, clock)
        view.listen(feed.touch)
        indexer = Indexer(index, embedder)
        async with background(view.follow_cards(), view.follow_leases(), outcomes.follow(experience)):
            await view.cards_ready.wait()
            await view.leases_ready.wait()
            cards = [record.card for record in view.cards()]
            await indexer.rebuild(cards, [card.agent_id for card in cards if view.is_online(card.agent_id)])

            async def status(_request: AskIndexStatus) -> IndexStatus:
                return IndexStatus(cards=await index.count(), model_id=embedder.model_id)

            endpoints = [
                Endpoint("search", subjects.SEARCH, answer(Search, Searcher(index, embedder, replicas, experience).search)),
                Endpoint("report", subjects.ANY_REPORT, answer_as(ReportOutcomes, assessor.report, lambda told: told.agent_id)),
                Endpoint("status", subjects.INDEX_STATUS, answer(AskIndexStatus, status)),
            ]
            async with (
                background(indexer.follow(feed.events())),
                open_service(client, "ioa-discovery", "Finds agents by meaning", settings.version, endpoints),
            ):
                await stop.wait()


if __name__ == "__main__":
    run_process(DiscoverySettings, serve)
