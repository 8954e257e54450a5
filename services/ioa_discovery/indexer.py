"""Write the present state of agents into the index.

All operations are idempotent: an agent whose entry has an equal fingerprint costs no vector, also after a restart.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import NamedTuple

from ioa.ports.agent_index import SCHEMA_VERSION, AgentIndex, Indexed, IndexEntry
from ioa.ports.embedder import Embedder
from ioa.protocol.cards import AgentCard
from ioa.protocol.ids import AgentId
from ioa_discovery.terms import document_terms


class RegisteredAgent(NamedTuple):
    """An agent's card, and whether its lease is valid."""

    card: AgentCard
    online: bool


class Indexer:
    """Keep an index equal to the registry. One instance writes to the index of a process, one call after the other."""

    def __init__(self, index: AgentIndex, embedder: Embedder) -> None:
        self._index = index
        self._embedder = embedder
        self._indexed: dict[AgentId, Indexed] = {}

    @property
    def cards(self) -> int:
        """Number of cards in the index, online or not."""
        return len(self._indexed)

    async def load(self) -> Iterable[AgentId]:
        """Read the state of the index; return its agents."""
        self._indexed = dict(await self._index.indexed())
        return self._indexed.keys()

    async def apply(self, agents: Mapping[AgentId, RegisteredAgent | None]) -> None:
        """Insert, replace and remove agents; None removes one. Searches see the result when this returns.

        Raises:
            UnavailableError: The index does not answer; its content is then unknown, so call `load` again.
        """
        present = {agent_id: agent for agent_id, agent in agents.items() if agent is not None}
        await self._remove([agent_id for agent_id in self._indexed.keys() & agents.keys() if agent_id not in present])
        stale = [agent for agent in present.values() if self._is_stale(agent.card)]
        for online in (True, False):
            await self._set_online(
                [
                    agent_id
                    for agent_id, agent in present.items()
                    if agent.online is online and agent_id in self._indexed and self._indexed[agent_id].online is not online
                ],
                online,
            )
        if stale:
            await self._put(stale)

    def _is_stale(self, card: AgentCard) -> bool:
        indexed = self._indexed.get(card.agent_id)
        return indexed is None or indexed.fingerprint != self._fingerprint(card)

    async def _remove(self, agent_ids: Sequence[AgentId]) -> None:
        if agent_ids:
            await self._index.remove(agent_ids)
        for agent_id in agent_ids:
            del self._indexed[agent_id]

    async def _set_online(self, agent_ids: Sequence[AgentId], online: bool) -> None:
        if agent_ids:
            await self._index.set_online(agent_ids, online)
        self._indexed.update({agent_id: replace(self._indexed[agent_id], online=online) for agent_id in agent_ids})

    async def _put(self, agents: Sequence[RegisteredAgent]) -> None:
        """Embed and store new and changed cards."""
        cards = [agent.card for agent in agents]
        vectors = iter(await self._embedder.embed([text for card in cards for text in (_profile_text(card), *card.examples)]))
        words = await asyncio.to_thread(lambda: [document_terms(_profile_words(card)) for card in cards])
        entries = [
            IndexEntry(
                card=card,
                online=online,
                text=next(vectors),
                examples=tuple(islice(vectors, len(card.examples))),
                terms=terms,
                fingerprint=self._fingerprint(card),
            )
            for (card, online), terms in zip(agents, words, strict=True)
        ]
        await self._index.put(entries)
        self._indexed.update({entry.card.agent_id: Indexed(entry.fingerprint, entry.online) for entry in entries})

    def _fingerprint(self, card: AgentCard) -> str:
        """Return a digest of everything that an index entry depends on."""
        content = f"{SCHEMA_VERSION}\0{self._embedder.model_id}\0{card.model_dump_json()}"
        return hashlib.sha256(content.encode()).hexdigest()[:32]


def _profile_text(card: AgentCard) -> str:
    """Return name, description and skills. The default model reads about the first 200 words.

    The name is followed by a colon: with a full stop, the right agent is first less often in seven of eleven evaluations.
    """
    skills = [f"{skill.name}: {skill.description}" if skill.description else skill.name for skill in card.skills]
    return "\n".join((f"{card.name}: {card.description}", *skills))


def _profile_words(card: AgentCard) -> str:
    """Return all text that is searched by words: the profile, the tags and the examples."""
    return "\n".join((_profile_text(card), " ".join(card.tags), *card.examples))
