"""The index follows the registry: events become index updates, in batches, as often as they come.

Everything here is idempotent: an event that is delivered twice, or after a restart, finds an equal fingerprint and costs no
embedding. Two watches may deliver a card and its liveness in either order, so liveness is remembered for cards yet to come.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from ioa.ports.agent_index import AgentIndex, IndexEntry, SparseVector
from ioa.ports.embedder import Embedder, Vector
from ioa.protocol.cards import AgentCard
from ioa.protocol.ids import AgentId
from ioa_discovery.search.profile import fingerprint, profile_text, profile_words
from ioa_discovery.search.terms import Stem, document_terms, english_stem

BATCH_CARDS = 64
"""Cards that are embedded and written together: searchable soon for the first, cheap for the last."""


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


class ChangePace(Protocol):
    """Says which changed cards are put in now. Where one is not, the card before stays, and the newest is brought when it may."""

    def may_change(self, agent_id: AgentId) -> bool:
        """Whether an agent's changed card is to be put in now."""
        ...


class Indexer:
    """Keep an index equal to the registry. One instance writes.

    Events of two sources may be applied at the same time, if only one of them has cards: cards take long to embed, and meanwhile
    those of the other are applied. Nothing else may run beside anything.

    Args:
        index: What is kept.
        embedder: What it is filled by.
        stem: What the words of cards are reduced by.
        changes: Who says which changed cards are put in; without it, all are.
    """

    def __init__(
        self, index: AgentIndex, embedder: Embedder, *, stem: Stem = english_stem, changes: ChangePace | None = None
    ) -> None:
        self._stem = stem
        self._changes = changes
        self._index = index
        self._embedder = embedder
        self._writing = asyncio.Lock()
        self._fingerprints: dict[AgentId, str] = {}
        self._online: set[AgentId] = set()

    async def load(self) -> Collection[AgentId]:
        """Learn what the index holds already, which then costs nothing, and return whom."""
        held = await self._index.indexed()
        self._fingerprints = {agent_id: state.fingerprint for agent_id, state in held.items()}
        self._online = {agent_id for agent_id, state in held.items() if state.online}
        return held.keys()

    async def rebuild(self, cards: Iterable[AgentCard], online: Iterable[AgentId]) -> None:
        """Make the index equal to the registry as it is now: add, replace, remove, and set who is alive.

        What the index holds already is kept, so this is cheap after a restart and whole after a loss.
        """
        held = await self.load()
        wanted = {card.agent_id: card for card in cards}
        alive = set(online)
        removed: list[RegistryEvent] = [AgentRemoved(agent_id) for agent_id in held if agent_id not in wanted]
        leases = [AgentOnline(agent_id) if agent_id in alive else AgentOffline(agent_id) for agent_id in wanted]
        await self.apply([*removed, *leases, *map(CardStored, wanted.values())])

    async def apply(self, events: Sequence[RegistryEvent]) -> None:
        """Apply events of which, for each agent and kind, only the last counts. Searchable when this returns."""
        cards: dict[AgentId, AgentCard] = {}
        removed: set[AgentId] = set()
        alive: dict[AgentId, bool] = {}
        for event in events:
            match event:
                case CardStored(card):
                    cards[card.agent_id] = card
                    removed.discard(card.agent_id)
                case AgentOnline(agent_id):
                    alive[agent_id] = True
                case AgentOffline(agent_id):
                    alive[agent_id] = False
                case AgentRemoved(agent_id):
                    cards.pop(agent_id, None)
                    alive.pop(agent_id, None)
                    removed.add(agent_id)
        async with self._writing:
            await self._remove(sorted(removed))
            await self._set_online({agent_id for agent_id, online in alive.items() if online != (agent_id in self._online)})
        await self._put(cards.values())

    async def follow(self, batches: AsyncIterable[Sequence[RegistryEvent]]) -> None:
        """Apply batches as they come, until the source ends.

        Raises:
            UnavailableError: The embedder or the index is away; what it holds then is not known, so `load` again.
        """
        async for batch in batches:
            await self.apply(batch)

    async def _set_online(self, changed: set[AgentId]) -> None:
        """Turn the liveness of some agents round. That of a card yet to come is only remembered."""
        came, went = sorted(changed - self._online), sorted(changed & self._online)
        self._online ^= changed
        for agent_ids, online in ((came, True), (went, False)):
            here = [agent_id for agent_id in agent_ids if agent_id in self._fingerprints]
            if here:
                await self._index.set_online(here, online)

    async def _remove(self, agent_ids: Sequence[AgentId]) -> None:
        if agent_ids:
            await self._index.remove(agent_ids)
        for agent_id in agent_ids:
            self._fingerprints.pop(agent_id, None)
            self._online.discard(agent_id)

    async def _put(self, cards: Iterable[AgentCard]) -> None:
        """Embed and store what is new or changed, in batches."""
        stale = [card for card in cards if self._is_due(card)]
        for start in range(0, len(stale), BATCH_CARDS):
            batch = stale[start : start + BATCH_CARDS]
            vectors = await self._embedder.embed([text for card in batch for text in _texts(card)])
            words = await asyncio.to_thread(self._words, batch)
            async with self._writing:
                entries = self._entries(batch, iter(vectors), words)
                await self._index.put(entries)
                self._fingerprints.update({entry.card.agent_id: entry.fingerprint for entry in entries})

    def _words(self, cards: Sequence[AgentCard]) -> Sequence[SparseVector]:
        return [document_terms(profile_words(card), self._stem) for card in cards]

    def _entries(self, cards: Sequence[AgentCard], vectors: Iterator[Vector], words: Iterable[SparseVector]) -> list[IndexEntry]:
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

    def _is_due(self, card: AgentCard) -> bool:
        """Whether a card is new, or has changed and its turn has come."""
        held = self._fingerprints.get(card.agent_id)
        if held is None or held == self._fingerprint(card) or self._changes is None:
            return held != self._fingerprint(card)
        return self._changes.may_change(card.agent_id)

    def _fingerprint(self, card: AgentCard) -> str:
        return fingerprint(card, self._embedder.model_id)


def _texts(card: AgentCard) -> Sequence[str]:
    """Return what of a card becomes vectors."""
    return (profile_text(card), *card.examples)
