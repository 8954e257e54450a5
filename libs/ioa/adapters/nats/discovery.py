"""Discovery over NATS."""

from __future__ import annotations

from datetime import timedelta

from nats.aio.client import Client

from ioa.adapters.nats.request import NatsRequester
from ioa.protocol import subjects
from ioa.protocol.search import Search, SearchResult


class NatsDiscovery:
    """Requests by `caller` to whichever replica answers within `timeout`."""

    def __init__(self, client: Client, caller: str, timeout: timedelta) -> None:
        self._caller = caller
        self._requester = NatsRequester(client)
        self._timeout = timeout

    async def search(self, search: Search) -> SearchResult:
        """Ask who fits."""
        return await self._requester.request(subjects.search(self._caller), search, SearchResult, timeout=self._timeout)
