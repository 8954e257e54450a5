"""The index follows the registry: events become index updates, in batches, as often as they come.

Everything here is idempotent: an event that is delivered twice, or after a restart, finds an equal fingerprint and costs no
embedding. Two watches may deliver a card and its liveness in either order, so liveness is remembered for cards yet to come.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterable, Iterable, Sequence
from dataclasses import dataclass

from ioa.ports.agent_index import AgentIndex, IndexEntry
from ioa.ports.embedder import Embedder
from ioa.protocol.cards import AgentCard
from ioa.protocol.ids import AgentId
from ioa_discovery.profile import fingerprint, profile_text, profile_words
from ioa_discovery.terms import document_terms

BATCH_EVENTS = 64
"""Cards that are embedded and written together: searchable soon for the first, cheap for the last."""
_MAX_WAITING = 1_024


@dataclass(frozen=True, slots=True)
class CardStored:
    """An agent registered, or changed its card."""

    card: AgentCard


@dataclass(frozen=True, slots=True)
class AgentOnline:
    """An agent's lease began."""

    agent_id: AgentId


@dataclass(frozen=True, slots=True)
class AgentOffline:
    """An agent's lease ended; its card stays."""

    agent_id: AgentId


@dataclass(frozen=True, slots=True)
class AgentRemoved:
    """An agent deregistered."""

    agent_id: AgentId


RegistryEvent = CardStored | AgentOnline | AgentOffline | AgentRemoved


class Indexer:
    """Keep an index equal to the registry. One instance writes; `apply` and `rebuild` must not run at the same time."""

    def __init__(self, index: AgentIndex, embedder: Embedder) -> None:
        self._index = index
        self._embedder = embedder
        self._fingerprints: dict[AgentId, str] = {}
        self._online: set[AgentId] = set()

    async def rebuild(self, cards: Iterable[AgentCard], online: Iterable[AgentId]) -> None:
        """Make the index equal to the registry as it is now: add, replace, remove, and set who is alive.

        What the index holds already is kept, so this is cheap after a restart and whole after a loss.
        """
        held = await self._index.indexed()
        self._fingerprints = {agent_id: state.fingerprint for agent_id, state in held.items()}
        self._online = set(online)
        wanted = {card.agent_id: card for card in cards}
        await self._remove([agent_id for agent_id in held if agent_id not in wanted])
        stale = {agent_id for agent_id in wanted if agent_id in held and held[agent_id].online != (agent_id in self._online)}
        await self._set_online(stale)
        await self._put(wanted.values())

    async def apply(self, events: Sequence[RegistryEvent]) -> None:
        """Apply events of which, for each agent and kind, only the last counts. Searchable when this returns."""
        cards: dict[AgentId, AgentCard] = {}
        removed: set[AgentId] = set()
        before = set(self._online)
        for event in events:
            match event:
                case CardStored(card):
                    cards[card.agent_id] = card
                    removed.discard(card.agent_id)
                case AgentOnline(agent_id):
                    self._online.add(agent_id)
                case AgentOffline(agent_id):
                    self._online.discard(agent_id)
                case AgentRemoved(agent_id):
                    cards.pop(agent_id, None)
                    removed.add(agent_id)
        await self._remove(sorted(removed))
        await self._set_online(self._online ^ before)
        await self._put(cards.values())

    async def follow(self, events: AsyncIterable[RegistryEvent]) -> None:
        """Apply events as they come, those that are waiting together, until the source ends.

        Raises:
            ExceptionGroup: The source, the embedder or the index failed; the index is behind, so open the source anew.
        """
        waiting: asyncio.Queue[RegistryEvent | None] = asyncio.Queue(_MAX_WAITING)
        async with asyncio.TaskGroup() as group:
            group.create_task(_read(events, waiting))
            group.create_task(self._drain(waiting))

    async def _drain(self, waiting: asyncio.Queue[RegistryEvent | None]) -> None:
        ended = False
        while not ended:
            batch = [await waiting.get()]
            while len(batch) < BATCH_EVENTS and not waiting.empty():
                batch.append(waiting.get_nowait())
            ended = batch[-1] is None
            await self.apply([event for event in batch if event is not None])

    async def _set_online(self, agent_ids: set[AgentId]) -> None:
        for online in (True, False):
            await self._index.set_online(sorted(agent_id for agent_id in agent_ids if (agent_id in self._online) == online), online)

    async def _remove(self, agent_ids: Sequence[AgentId]) -> None:
        await self._index.remove(agent_ids)
        for agent_id in agent_ids:
            self._fingerprints.pop(agent_id, None)
            self._online.discard(agent_id)

    async def _put(self, cards: Iterable[AgentCard]) -> None:
        """Embed and store what is new or changed, in batches."""
        stale = [card for card in cards if self._fingerprints.get(card.agent_id) != self._fingerprint(card)]
        for start in range(0, len(stale), BATCH_EVENTS):
            entries = await self._entries(stale[start : start + BATCH_EVENTS])
            await self._index.put(entries)
            self._fingerprints.update({entry.card.agent_id: entry.fingerprint for entry in entries})

    async def _entries(self, cards: Sequence[AgentCard]) -> list[IndexEntry]:
        texts = [text for card in cards for text in (profile_text(card), *card.examples)]
        vectors = iter(await self._embedder.embed(texts))
        words = await asyncio.to_thread(lambda: [document_terms(profile_words(card)) for card in cards])
        entries: list[IndexEntry] = []
        for card, terms in zip(cards, words, strict=True):
            entries.append(
                IndexEntry(
                    card=card,
                    online=card.agent_id in self._online,
                    text=next(vectors),
                    examples=tuple(next(vectors) for _ in card.examples),
                    terms=terms,
                    fingerprint=self._fingerprint(card),
                )
            )
        return entries

    def _fingerprint(self, card: AgentCard) -> str:
        return fingerprint(card, self._embedder.model_id)


async def _read(events: AsyncIterable[RegistryEvent], waiting: asyncio.Queue[RegistryEvent | None]) -> None:
    async for event in events:
        await waiting.put(event)
    await waiting.put(None)
