"""The index kept in line with the registry for as long as discovery runs, whatever becomes of the index.

At the start, and whenever the index was away or its process was started again, it is asked what it holds, and everybody is looked
at who is in the registry or in the index: what is missing, stale or too much is put right, agent by agent, while searches are
answered from what is there.
"""

from __future__ import annotations

import asyncio
from datetime import timedelta

import structlog

from ioa.cancellation import TaskGroup
from ioa.errors import UnavailableError
from ioa_discovery.indexer import Indexer
from ioa_discovery.registry_feed import RegistryFeed

_RETRY = timedelta(seconds=0.5)

_log = structlog.get_logger(__name__)


class _IndexRestartedError(Exception):
    """The index may hold less than the indexer thinks."""


class Upkeep:
    """Keep an index in line with the registry."""

    def __init__(self, indexer: Indexer, feed: RegistryFeed, *, retry: timedelta = _RETRY) -> None:
        self._indexer = indexer
        self._feed = feed
        self._retry = retry

    async def keep(self) -> None:
        """Follow the registry, for ever."""
        while True:
            is_away = False
            try:
                await self._compare_and_follow()
            except* UnavailableError as errors:
                _log.warning("index_away", error=str(errors.exceptions[0]))
                is_away = True
            except* _IndexRestartedError:
                _log.warning("index_restarted")
            if is_away:  # nothing waits in an `except*`: before CPython 3.11.4 who is cancelled there leaves it with a group
                await asyncio.sleep(self._retry.total_seconds())

    async def _compare_and_follow(self) -> None:
        self._feed.must_compare.clear()
        async with TaskGroup() as group:
            group.create_task(self._raise_when_restarted())
            self._feed.review(await self._indexer.load())
            group.create_task(self._indexer.follow(self._feed.moves()))
            await self._indexer.follow(self._feed.batches())

    async def _raise_when_restarted(self) -> None:
        await self._feed.must_compare.wait()
        raise _IndexRestartedError
