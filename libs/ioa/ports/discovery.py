"""Discovery, as services ask it."""

from __future__ import annotations

from typing import Protocol

from ioa.protocol.agents.search import Search, SearchResult


class Discovery(Protocol):
    """Searches agents that fit a need."""

    async def search(self, search: Search) -> SearchResult:
        """Find agents by meaning.

        Raises:
            UnavailableError: Discovery does not answer in time.
        """
