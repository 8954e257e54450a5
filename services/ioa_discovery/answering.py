"""Discovery's endpoints over one connection.

`__main__` chooses the index and the embedding model. This module imports neither, so that a system for tests needs no library.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, replace

from ioa.adapters.nats.requests.request import SEARCH_TIMEOUT
from ioa.adapters.nats.requests.service import Handler, ServiceEndpoint, answer, answer_agent, open_service
from ioa.adapters.nats.stores.nats_registry_view import NatsRegistryView
from ioa.adapters.nats.stores.outcome_store import NatsOutcomes
from ioa.adapters.nats.stores.sessions import NatsSessions
from ioa.adapters.nats.streams.nats_group_log import NatsGroupLog
from ioa.adapters.nats.wire.connection import Connection
from ioa.adapters.system_clock import SystemClock
from ioa.concurrency import beside
from ioa.distribution import installed_version
from ioa.errors import ForbiddenError
from ioa.ports.agent_index import AgentIndex
from ioa.ports.discovery import Discovery
from ioa.ports.embedder import Embedder
from ioa.protocol import subjects
from ioa.protocol.agents.outcomes import ReportOutcomes
from ioa.protocol.agents.search import AskIndexStatus, IndexStatus, Search
from ioa.protocol.codec import MAX_PAYLOAD_BYTES, encode, receive
from ioa.runtime.control_plane import ControlPlaneSettings
from ioa_discovery.assessment import Assessor
from ioa_discovery.experience import Experience
from ioa_discovery.indexer import Indexer
from ioa_discovery.replicas import Replicas
from ioa_discovery.searcher import Searcher
from ioa_discovery.upkeep import Upkeep


@dataclass(frozen=True, slots=True)
class Engines:
    """An index, the embedder of needs, and the embedder of cards, which may store their vectors."""

    index: AgentIndex
    embedder: Embedder
    card_embedder: Embedder


_SEARCH_COST = 10
"""Cost of a search in a caller's token bucket: it takes that much longer than other requests."""
_MAX_SEARCHES, _MAX_SEARCHES_PER_CALLER = 64, 8
"""Searches that are handled at once, of all callers and of one."""


def answer_search(searcher: Discovery) -> Handler:
    """Make the handler of searches. An agent searches as itself, because cards restrict the pools that may find them.

    Group setup searches for the agents that open groups; a user searches for no agent.
    """

    async def handle(subject: str, data: bytes) -> bytes:
        request = receive(Search, data)
        if subject.startswith(f"{subjects.ROOT}.agent."):
            _, caller = subjects.parse_agent(subject)
            if request.by not in (None, caller):
                raise ForbiddenError(f"{caller} may not search as {request.by}.")
            request = request.model_copy(update={"by": caller})
        return encode(await searcher.search(request))

    return handle


@asynccontextmanager
async def open_answering(
    client: Connection,
    settings: ControlPlaneSettings,
    open_engines: Callable[[], AbstractAsyncContextManager[Engines]],
) -> AsyncIterator[None]:
    """Answer searches while the block runs, from the present content of the index, which follows the registry meanwhile."""
    view, sessions = NatsRegistryView(client, settings.lease), NatsSessions(client)
    clock, outcomes = SystemClock(), NatsOutcomes(client)
    replicas = Replicas(view, clock, settings.renew_every)
    view.listen(replicas.touch)
    experience = Experience(clock)
    assessor = Assessor(NatsGroupLog(client), view, outcomes, sessions, experience)
    async with (
        open_engines() as engines,
        beside(view.follow_cards(), view.follow_leases(), sessions.follow(), outcomes.follow(experience.add, experience.forget)),
    ):
        await view.whole()
        indexer = Indexer(engines.index, engines.card_embedder)
        upkeep = Upkeep(indexer, view)
        view.listen(upkeep.touch)
        searcher = Searcher(engines.index, engines.embedder, replicas, experience)

        async def status(_request: AskIndexStatus) -> IndexStatus:
            return IndexStatus(cards=indexer.cards)

        endpoints = [
            ServiceEndpoint(
                "search",
                (subjects.any_agent(subjects.SEARCH), subjects.any_user(subjects.SEARCH), subjects.GROUP_SEARCH),
                answer_search(searcher),
                cost=_SEARCH_COST,
                timeout=SEARCH_TIMEOUT,
                max_bytes=MAX_PAYLOAD_BYTES,
            ),
            ServiceEndpoint(
                "report",
                subjects.any_agent(subjects.REPORT),
                answer_agent(ReportOutcomes, assessor.report, lambda request: request.agent_id),
                max_bytes=MAX_PAYLOAD_BYTES,
            ),
            ServiceEndpoint("status", subjects.any_status(subjects.INDEX_STATUS), answer(AskIndexStatus, status)),
        ]
        async with (
            beside(upkeep.keep()),
            open_service(
                client,
                "ioa-discovery",
                "Finds agents by meaning",
                installed_version(),
                endpoints,
                limits=replace(settings.limits, max_concurrent=_MAX_SEARCHES, max_concurrent_per_key=_MAX_SEARCHES_PER_CALLER),
            ),
        ):
            yield
