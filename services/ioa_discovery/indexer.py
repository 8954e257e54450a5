"""Apply registry events to the index, in batches.

All operations are idempotent: an event that is delivered twice, or after a restart, meets an equal fingerprint and computes no
vector. A card and its lease may arrive in either order, so the status of an agent is remembered before its card arrives.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterable, Collection, Iterable, Sequence
from dataclasses import dataclass
from itertools import islice

from ioa.ports.agent_index import AgentIndex, IndexEntry
from ioa.ports.embedder import Embedder
from ioa.protocol.cards import AgentCard
from ioa.protocol.ids import AgentId
from ioa_discovery.profile import fingerprint, profile_text, profile_words
from ioa_discovery.terms import Stem, document_terms, english_stem

BATCH_CARDS = 64
"""Cards that are embedded and written together."""


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
    """Keep an index equal to the registry. One instance writes to the index of a process.

    Events of two sources may be applied at the same time if only one of them has cards: while cards are embedded, the events of
    the other source are applied.

    Args:
        index: The index to write.
        embedder: The embedder of cards.
        stem: Stemmer of words.
    """

    def __init__(self, index: AgentIndex, embedder: Embedder, *, stem: Stem = english_stem) -> None:
        self._stem = stem
        self._index = index
        self._embedder = embedder
        self._writing = asyncio.Lock()
        self._fingerprints: dict[AgentId, str] = {}
        self._online: set[AgentId] = set()

    @property
    def cards(self) -> int:
        """Number of cards in the index, online or not."""
        return len(self._fingerprints)

    async def load(self) -> Collection[AgentId]:
        """Read the state of the index; return its agents."""
        held = await self._index.indexed()
        self._fingerprints = {agent_id: state.fingerprint for agent_id, state in held.items()}
        self._online = {agent_id for agent_id, state in held.items() if state.online}
        return held.keys()

    async def rebuild(self, cards: Iterable[AgentCard], online: Iterable[AgentId]) -> None:
        """Make the index equal to these cards and this status: add, replace and remove. Entries that are up to date stay."""
        held = await self.load()
        wanted = {card.agent_id: card for card in cards}
        alive = set(online)
        removed: list[RegistryEvent] = [AgentRemoved(agent_id) for agent_id in held if agent_id not in wanted]
        leases = [AgentOnline(agent_id) if agent_id in alive else AgentOffline(agent_id) for agent_id in wanted]
        await self.apply([*removed, *leases, *map(CardStored, wanted.values())])

    async def apply(self, events: Sequence[RegistryEvent]) -> None:
        """Apply events; for each agent and kind, the last one counts. Searches see the result when this returns."""
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
        """Apply batches until the source ends.

        Raises:
            UnavailableError: The index does not answer; its content is then unknown, so call `load` again.
        """
        async for batch in batches:
            await self.apply(batch)

    async def _set_online(self, changed: set[AgentId]) -> None:
        """Invert the status of some agents. For an agent without a card it is only remembered."""
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
        """Embed and store new and changed cards, in batches."""
        stale = [card for card in cards if self._fingerprints.get(card.agent_id) != self._fingerprint(card)]
        for start in range(0, len(stale), BATCH_CARDS):
            batch = stale[start : start + BATCH_CARDS]
            vectors = iter(await self._embedder.embed([text for card in batch for text in (profile_text(card), *card.examples)]))
            words = await asyncio.to_thread(
                lambda cards: [document_terms(profile_words(card), self._stem) for card in cards], batch
            )
            async with self._writing:
                entries = [
                    IndexEntry(
                        card=card,
                        online=card.agent_id in self._online,
                        text=next(vectors),
                        examples=tuple(islice(vectors, len(card.examples))),
                        terms=terms,
                        fingerprint=self._fingerprint(card),
                    )
                    for card, terms in zip(batch, words, strict=True)
                ]
                await self._index.put(entries)
                self._fingerprints.update({entry.card.agent_id: entry.fingerprint for entry in entries})

    def _fingerprint(self, card: AgentCard) -> str:
        return fingerprint(card, self._embedder.model_id)
