"""How the index is, as metrics; above all how much of what is nearest the search tree finds of what is really asked."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import timedelta
from typing import Protocol

import structlog
from prometheus_client import Gauge

from ioa.errors import UnavailableError
from ioa.ports.agent_index import Candidates, IndexQuery, Signal
from ioa_discovery.registry_feed import RegistryFeed

COUNT_EVERY = timedelta(seconds=15)
SAMPLE_EVERY = timedelta(minutes=5)
"""Comparing everything with everything takes half a second at a million agents, in which others wait."""
BEST = 10
_APPROXIMATE = (Signal.TEXT, Signal.EXAMPLES)

index_agents = Gauge("ioa_discovery_index_agents", "Agents in the index of this replica, online or not")
index_waiting = Gauge("ioa_discovery_index_waiting", "Agents whose last change is still to be indexed by this replica")
index_recall = Gauge(
    "ioa_discovery_index_recall",
    "Share of the ten nearest agents that a search finds, on the query sampled last; 1 where searches are exact",
    ["signal"],
)

_log = structlog.get_logger(__name__)


class Compared(Protocol):
    """An index that can answer the same query in two ways."""

    @property
    def last_query(self) -> IndexQuery | None:
        """What was asked last."""
        ...

    async def search(self, queries: Sequence[IndexQuery], *, exact: bool = False) -> Sequence[Candidates]:
        """Answer as always, or by comparing everything with everything."""
        ...

    async def count(self) -> int:
        """Return how many agents the index holds."""
        ...


async def sample(index: Compared) -> dict[Signal, float]:
    """Ask the last query again in both ways; return the recall of each signal that found anything."""
    query = index.last_query
    if query is None:
        return {}
    [approximate] = await index.search([query])
    [exact] = await index.search([query], exact=True)
    recalls = {}
    for signal in _APPROXIMATE:
        nearest = {candidate.agent_id for candidate in exact[signal][:BEST]}
        if nearest:
            found = {candidate.agent_id for candidate in approximate[signal][:BEST]}
            recalls[signal] = len(nearest & found) / len(nearest)
    return recalls


async def observe(index: Compared, feed: RegistryFeed) -> None:
    """Set the gauges now and again, for ever."""
    index_waiting.set_function(lambda: feed.waiting)
    loop = asyncio.get_running_loop()
    due = loop.time()
    while True:
        try:
            index_agents.set(await index.count())
            if loop.time() >= due:
                due = loop.time() + SAMPLE_EVERY.total_seconds()
                for signal, recall in (await sample(index)).items():
                    index_recall.labels(signal.value).set(recall)
        except UnavailableError as error:
            _log.warning("index_not_observed", error=error.message)
        await asyncio.sleep(COUNT_EVERY.total_seconds())
