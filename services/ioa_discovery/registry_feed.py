"""What has changed in the registry, as batches of events for the indexer.

The feed hands on the present state of each agent that was touched, not the history of it: however far the indexer lags, it has
at most one round of work per agent before it is current. Who was touched last comes first, so that an agent that registers while
a hundred thousand wait is found at once; half of each batch are those that wait longest, so that nobody waits for ever.

Changes of one card are rate-limited, because embedding a card may take a second of a core: above the limit only the newest version
is indexed, when the limit allows. Everything else of an agent, that it comes, goes or is removed, passes at once, also while cards
are being embedded.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from itertools import islice

from ioa.ports.registry_store import RegistryView
from ioa.protocol.ids import AgentId
from ioa.rate_limit import RateLimit, RateLimiter
from ioa_discovery.indexer import AgentOffline, AgentOnline, AgentRemoved, CardStored, RegistryEvent

BATCH_AGENTS = 16
CHANGES = RateLimit(0.1, 5)
"""Rate limit of indexed versions of one agent's card."""


class RegistryFeed:
    """Collect the agents that were touched, and tell what they are now.

    Args:
        view: What the registry holds.
        changes: Rate limit of indexed versions of one agent's card.
        now: Returns seconds that never go back.
    """

    def __init__(self, view: RegistryView, changes: RateLimit = CHANGES, now: Callable[[], float] = time.monotonic) -> None:
        self._view = view
        self._pause = 1 / changes.per_second
        self._changes, self._now = RateLimiter(changes), now
        self._held_back: set[AgentId] = set()
        self._touched: dict[AgentId, None] = {}
        self._any = asyncio.Event()
        self._moved: dict[AgentId, None] = {}
        self._any_moved = asyncio.Event()
        self.must_compare = asyncio.Event()
        """Set when the index may hold less than it did."""

    def touch(self, agent_id: AgentId) -> None:
        """Have an agent looked at again, before those that wait."""
        self._touched.pop(agent_id, None)
        self._touched[agent_id] = None
        self._any.set()
        self._moved[agent_id] = None
        self._any_moved.set()

    def may_change(self, agent_id: AgentId) -> bool:
        """Whether an agent's changed card may be indexed now. If not, it is looked at again when it may, as it is then."""
        if not self._changes.acquire(agent_id, self._now()):
            return True
        if agent_id not in self._held_back:
            self._held_back.add(agent_id)
            asyncio.get_running_loop().call_later(self._pause, self._let_go, agent_id)
        return False

    def compare(self) -> None:
        """Have the whole index compared with the registry."""
        self.must_compare.set()

    def review(self, held: Iterable[AgentId]) -> None:
        """Have everybody looked at who is in the registry or was held by the index, after those that were touched by themselves."""
        everybody = dict.fromkeys([*held, *(record.card.agent_id for record in self._view.cards())])
        for agent_id in self._touched:
            everybody.pop(agent_id, None)
        self._touched = {**everybody, **self._touched}
        if self._touched:
            self._any.set()

    @property
    def waiting(self) -> int:
        """How many agents are still to be looked at."""
        return len(self._touched)

    async def batches(self) -> AsyncIterator[Sequence[RegistryEvent]]:
        """Yield what the touched agents are now, for ever."""
        while True:
            await self._any.wait()
            yield [event for agent_id in self._take() for event in present(self._view, agent_id)]
            if not self._touched:
                self._any.clear()

    async def moves(self) -> AsyncIterator[Sequence[RegistryEvent]]:
        """Yield who of those that were touched by themselves is alive, or gone, without their cards, for ever.

        They are in `batches` as well, which wait for what is embedded.
        """
        while True:
            await self._any_moved.wait()
            moved = list(islice(self._moved, BATCH_AGENTS))
            for agent_id in moved:
                del self._moved[agent_id]
            yield [event for agent_id in moved for event in present(self._view, agent_id) if not isinstance(event, CardStored)]
            if not self._moved:
                self._any_moved.clear()
            await asyncio.sleep(0)  # of most there is nothing to tell, and all come at the start

    def _let_go(self, agent_id: AgentId) -> None:
        self._held_back.discard(agent_id)
        self.touch(agent_id)

    def _take(self) -> list[AgentId]:
        taken: list[AgentId] = []
        while self._touched and len(taken) < BATCH_AGENTS:
            agent_id = next(reversed(self._touched)) if len(taken) < BATCH_AGENTS // 2 else next(iter(self._touched))
            del self._touched[agent_id]
            taken.append(agent_id)
        return taken


def present(view: RegistryView, agent_id: AgentId) -> tuple[RegistryEvent, ...]:
    """Return what an agent is now, as events."""
    record = view.card(agent_id)
    if record is None:
        return (AgentRemoved(agent_id),)
    online = view.is_online(agent_id)
    return CardStored(record.card), AgentOnline(agent_id) if online else AgentOffline(agent_id)
