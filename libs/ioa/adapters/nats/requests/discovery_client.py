"""Discovery over NATS."""

from __future__ import annotations

from datetime import timedelta

from nats.aio.client import Client

from ioa.adapters.nats.requests.request import NatsRequester
from ioa.protocol import subjects
from ioa.protocol.search import Search, SearchResult


class NatsDiscovery:
    """Searches of group setup, with a reply of any replica within `timeout`."""

    def __init__(self, client: Client, timeout: timedelta) -> None:
        self._requester = NatsRequester(client)
        self._timeout = timeout

    async def search(self, search: Search) -> SearchResult:
        """Search for agents."""
        return await self._requester.request(subjects.GROUP_SEARCH, search, SearchResult, timeout=self._timeout)
