"""Who searches, and what a search may say of that."""

from __future__ import annotations

import pytest

from ioa.errors import ForbiddenError
from ioa.protocol import subjects
from ioa.protocol.agents.search import Need, Search, SearchResult
from ioa.protocol.codec import decode, encode
from ioa.protocol.ids import AgentId, PoolId, UserId
from ioa_discovery.answering import answer_search

BOB, MALLORY = AgentId("bob"), AgentId("mallory")


class Asked:
    """Notes in whose name it is asked, and finds nobody."""

    def __init__(self) -> None:
        self.by = list[AgentId | None]()

    async def search(self, request: Search) -> SearchResult:
        """Find nobody."""
        self.by.append(request.by)
        return SearchResult()


@pytest.mark.parametrize(
    ("subject", "by", "taken_for"),
    [
        (subjects.agent(PoolId(MALLORY), MALLORY, subjects.SEARCH), MALLORY, MALLORY),
        (subjects.agent(PoolId(MALLORY), MALLORY, subjects.SEARCH), None, MALLORY),
        (subjects.GROUP_SEARCH, BOB, BOB),
        (subjects.user(UserId("anna"), subjects.SEARCH), None, None),
    ],
)
async def test_agents_search_as_themselves(subject: str, by: AgentId | None, taken_for: AgentId | None) -> None:
    """A card that says which pools may draft its agent is shown to no others, whatever they say; group setup asks for who leads."""
    asked = Asked()
    answer = await answer_search(asked)(subject, encode(Search(needs=(Need(text="sums"),), by=by)))
    assert (asked.by, decode(SearchResult, answer).merged) == ([taken_for], ())


async def test_nobody_searches_as_another() -> None:
    """Who names another is told that he may not."""
    asked = Asked()
    with pytest.raises(ForbiddenError, match="mallory may not search as bob"):
        await answer_search(asked)(
            subjects.agent(PoolId(MALLORY), MALLORY, subjects.SEARCH), encode(Search(needs=(Need(text="sums"),), by=BOB))
        )
    assert not asked.by
