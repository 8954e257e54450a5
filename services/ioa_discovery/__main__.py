"""Run one replica of discovery: `python -m ioa_discovery`."""

from __future__ import annotations

from pathlib import Path

from pydantic import Field

from ioa.adapters.nats.buckets import NatsRegistryView
from ioa.adapters.nats.connection import open_connection
from ioa.adapters.nats.log import NatsGroupLog
from ioa.adapters.nats.outcomes import NatsOutcomes
from ioa.adapters.nats.request_reply import Endpoint, answer, answer_as, open_service
from ioa.adapters.nats.sessions import NatsSessions
from ioa.adapters.system_clock import SystemClock
from ioa.distribution import installed_version
from ioa.protocol import subjects
from ioa.protocol.outcomes import ReportOutcomes
from ioa.protocol.search import AskIndexStatus, IndexStatus, Search
from ioa.runtime.control_plane import ControlPlaneSettings, open_topology
from ioa.runtime.process import StopSignal, background, run_process
from ioa_discovery.assessment import Assessor
from ioa_discovery.engines import EngineSettings, open_engines
from ioa_discovery.indexer import Indexer
from ioa_discovery.recall import observe
from ioa_discovery.registry_feed import RegistryFeed
from ioa_discovery.search.experience import Experience
from ioa_discovery.search.replicas import Replicas
from ioa_discovery.search.searcher import Searcher
from ioa_discovery.upkeep import Upkeep


class DiscoverySettings(ControlPlaneSettings):
    """What discovery is told besides what every service is."""

    qdrant_url: str | None = Field(
        default=None, description="a Qdrant server; without one the engine runs in a process of discovery's own"
    )
    qdrant_api_key: str | None = Field(default=None, description="the key of that server")
    index_folder: Path | None = Field(default=None, description="where that process keeps its index")
    embedding_model: str = Field(
        default="",
        description="a folder with model.onnx and tokenizer.json, or a sentence-transformers model; none: the light one",
    )
    embedding_processes: int = Field(default=1, ge=1, le=64, description="processes that embed, one core each")

    def engines(self) -> EngineSettings:
        """Which index and which model."""
        return EngineSettings(
            self.qdrant_url, self.qdrant_api_key, self.index_folder, self.embedding_model, self.embedding_processes
        )


async def serve(settings: DiscoverySettings, stop: StopSignal) -> None:
    """Answer searches until `stop` is set, from what the index holds while it is brought in line with the registry."""
    async with open_connection(settings.nats("ioa-discovery")) as client, open_topology(client, settings, make=False):
        view, sessions = NatsRegistryView(client, settings.lease), NatsSessions(client)
        feed = RegistryFeed(view)
        view.listen(feed.touch)
        clock, outcomes = SystemClock(), NatsOutcomes(client)
        replicas = Replicas(view, clock, settings.renew_every)
        view.listen(replicas.touch)
        experience = Experience(clock)
        assessor = Assessor(NatsGroupLog(client), view, outcomes, clock, sessions)
        async with (
            open_engines(settings.engines(), restarted=feed.compare) as engines,
            background(view.follow_cards(), view.follow_leases(), sessions.follow(), outcomes.follow(experience)),
        ):
            await view.whole()
            index, embedder = engines.index, engines.embedder

            async def status(_request: AskIndexStatus) -> IndexStatus:
                return IndexStatus(cards=await index.count(), model_id=embedder.model_id)

            endpoints = [
                Endpoint("search", subjects.SEARCH, answer(Search, Searcher(index, embedder, replicas, experience).search)),
                Endpoint("report", subjects.ANY_REPORT, answer_as(ReportOutcomes, assessor.report, lambda told: told.agent_id)),
                Endpoint("status", subjects.INDEX_STATUS, answer(AskIndexStatus, status)),
            ]
            upkeep = Upkeep(Indexer(index, engines.card_embedder), feed)
            async with (
                background(upkeep.keep(), observe(index, feed)),
                open_service(client, "ioa-discovery", "Finds agents by meaning", installed_version(), endpoints),
            ):
                await stop.wait()


if __name__ == "__main__":
    run_process(DiscoverySettings, serve)
