"""Discovery as a table: what is found for a request is what the test says. False in that nothing is embedded or compared."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from ioa.ports.brain import Contact
from ioa.protocol.cards import AgentCard
from ioa.protocol.ids import AgentId
from ioa.protocol.search import Hit, Need, NeedHits, SearchResult


@dataclass
class TabledTools:
    """Answer searches by keyword: an agent is found for a need that contains one of its words, with the similarity given there.

    Attributes:
        cards: The agents by id.
        skills: For each agent its words and their similarities.
        searches: The texts of each call's needs.
    """

    cards: dict[AgentId, AgentCard]
    skills: dict[AgentId, dict[str, float]]
    searches: list[list[str]] = field(default_factory=list)

    async def search_client(self, needs: Sequence[Need]) -> SearchResult:
        """Look the needs up; hits are ordered by similarity, equal ones as the agents were listed."""
        self.searches.append([need.text for need in needs])
        by_need = tuple(NeedHits(need=need, hits=self._hits(need.text.lower())) for need in needs)
        return SearchResult(by_need=by_need)

    async def contacts(self) -> Sequence[Contact]:
        """Nobody is known."""
        return ()

    def _hits(self, text: str) -> tuple[Hit, ...]:
        found = []
        for agent_id, words in self.skills.items():
            similarity = max((value for word, value in words.items() if word in text), default=0.05)
            found.append(Hit(card=self.cards[agent_id], score=similarity, similarity=similarity))
        return tuple(sorted(found, key=lambda hit: -hit.score))


def tools_of(cards: Sequence[AgentCard], skills: dict[str, dict[str, float]]) -> TabledTools:
    """Build the table."""
    return TabledTools({card.agent_id: card for card in cards}, {AgentId(agent): words for agent, words in skills.items()})
