"""What has changed in the registry, as batches of events for the indexer.

The feed hands on the present state of each agent that was touched, not the history of it: however far the indexer lags, it has
at most one round of work per agent before it is current. Who was touched last comes first, so that an agent that registers while
a hundred thousand wait is found at once; half of each batch are those that wait longest, so that nobody waits for ever.

A card with fifty examples takes a second of a core to embed, one of signs alone five, and its agent may change it ten times a
second. So a card that is changed again and again is held back, the longer the longer it takes: the newest is indexed when its turn
has come, those between are not. Everything else of an agent, that it comes, goes or is removed, passes at once, also while cards
are being embedded.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from itertools import islice

from ioa.ports.inspection import CHANGING, SlowedCaller
from ioa.ports.registry_store import RegistryView
from ioa.protocol.cards import MAX_CARD_BYTES
from ioa.protocol.ids import AgentId
from ioa.quotas import Rate
from ioa.runtime.caller_pace import CallerPace
from ioa_discovery.indexer import AgentOffline, AgentOnline, AgentRemoved, CardStored, RegistryEvent

BATCH_AGENTS = 16
CHANGES = Rate(0.1, 5, answer_bytes=MAX_CARD_BYTES)
"""How often an agent's card is indexed anew: after a while without a change five times at once, and then once in ten seconds. One
that takes longer than a card of plain words can counts once more for each time that it does."""
_PLAIN_TOKEN_BYTES = 4
"""A token of plain words has more. Of signs, and of letters that the model does not know, each is one."""


class RegistryFeed:
    """Collect the agents that were touched, and tell what they are now.

    Args:
        view: What the registry holds.
        changes: How often one agent's card may change here.
        now: Returns seconds that never go back.
    """

    def __init__(self, view: RegistryView, changes: Rate = CHANGES, now: Callable[[], float] = time.monotonic) -> None:
        self._view = view
        self._pause = 1 / changes.per_second
        self._changes = CallerPace(now, CHANGING, changes)
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
        if self._changes.put_off(agent_id) is None:
            return True
        if agent_id not in self._held_back:
            self._held_back.add(agent_id)
            asyncio.get_running_loop().call_later(self._pause, self._let_go, agent_id)
        return False

    def charge(self, agent_id: AgentId, tokens: int) -> None:
        """Count how many tokens are read of a card that may change."""
        self._changes.charge(agent_id, tokens * _PLAIN_TOKEN_BYTES)

    def slowed(self) -> Sequence[SlowedCaller]:
        """Return whose cards were held back lately, and how often."""
        return self._changes.slowed()

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
