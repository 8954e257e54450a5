"""Keep the index equal to the registry while discovery runs.

At the start, and after the index did not answer, all agents of the registry and of the index are compared: missing, stale and
surplus entries are corrected agent by agent, while searches use the available part.
"""

from __future__ import annotations

import asyncio
from datetime import timedelta

import structlog
from prometheus_client import Gauge

from ioa.cancellation import TaskGroup
from ioa.errors import UnavailableError
from ioa_discovery.indexer import Indexer
from ioa_discovery.registry_feed import RegistryFeed

_RETRY = timedelta(seconds=0.5)

index_agents = Gauge("ioa_discovery_index_agents", "Agents in the index of this replica, online or not")
index_waiting = Gauge("ioa_discovery_index_waiting", "Agents whose last change this replica has not indexed")

_log = structlog.get_logger(__name__)


class Upkeep:
    """Follow the registry with an indexer."""

    def __init__(self, indexer: Indexer, feed: RegistryFeed, *, retry: timedelta = _RETRY) -> None:
        self._indexer = indexer
        self._feed = feed
        self._retry = retry
        index_agents.set_function(lambda: indexer.cards)
        index_waiting.set_function(lambda: feed.waiting)

    async def keep(self) -> None:
        """Follow the registry until cancelled."""
        while True:
            try:
                await self._compare_and_follow()
            except* UnavailableError as errors:
                _log.warning("index_unavailable", error=str(errors.exceptions[0]))
            # Outside `except*`: before CPython 3.11.4 a task that is cancelled in it ends with a group of errors.
            await asyncio.sleep(self._retry.total_seconds())

    async def _compare_and_follow(self) -> None:
        async with TaskGroup() as group:
            self._feed.review(await self._indexer.load())
            group.create_task(self._indexer.follow(self._feed.moves()))
            await self._indexer.follow(self._feed.batches())
