"""Team formation's tools, and the launch that ends it (paper, appendix A.2.3)."""

from __future__ import annotations

from collections.abc import Sequence

from ioa.adapters.sqlite_store import SqliteStore
from ioa.agent.searching import found_by
from ioa.errors import ForbiddenError
from ioa.ports.agent_network import AgentNetwork
from ioa.ports.brain import Contact
from ioa.protocol.ids import AgentId
from ioa.protocol.search import Need, Search, SearchResult

MAX_SEARCHES = 10


class BoundedTeamTools:
    """The tools of agent `me` for one mission: at most ten searches, and the contacts of the agent.

    `purpose` names the mission, such as by its group, so that different missions spread over the replicas of a pool.
    """

    def __init__(self, network: AgentNetwork, store: SqliteStore, me: AgentId, purpose: str) -> None:
        self._network = network
        self._store = store
        self._me = me
        self._purpose = purpose
        self._searches = 0

    async def search_client(self, needs: Sequence[Need]) -> SearchResult:
        """Ask discovery who fits."""
        if self._searches >= MAX_SEARCHES:
            raise ForbiddenError(f"The {MAX_SEARCHES} searches of this mission are spent.", hint="Launch with what was found.")
        self._searches += 1
        return await found_by(self._network, Search(needs=tuple(needs), by=self._me, purpose=self._purpose))

    async def contacts(self) -> Sequence[Contact]:
        """Everybody the agent has worked with."""
        return await self._store.contacts()
