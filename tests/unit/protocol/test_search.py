"""What may be asked of discovery, and what is refused in words that help."""

from __future__ import annotations

from typing import Any

import pytest

from ioa.errors import InvalidInputError
from ioa.protocol.agents.search import Filters, Need, Search
from ioa.protocol.cards import MAX_LOAD, Load
from ioa.protocol.codec import decode, encode, validate
from ioa.protocol.ids import AgentId


def asked(**need: Any) -> dict[str, Any]:
    """A search with one need."""
    return {"needs": [{"text": "charts", **need}]}


@pytest.mark.parametrize(
    ("raw", "why"),
    [
        ({}, "needs: Field required"),
        ({"needs": []}, "needs: Tuple should have at least 1 item"),
        ({"needs": [{"text": "charts"}] * 33}, "needs: at most 32 items are allowed; it has 33"),
        (asked(text=""), r"needs.0.text: String should have at least 1 character"),
        (asked(text=" \n\t "), r"needs.0.text: String should have at least 1 character"),
        (asked(text="x" * 100_000), r"needs.0.text: String should have at most 4000 characters"),
        (asked(k=0), "needs.0.k: Input should be greater than or equal to 1"),
        (asked(k=10_000), "needs.0.k: Input should be less than or equal to 100"),
        (
            asked(filters={"colour": "red"}),
            "needs.0.filters.colour: Extra inputs are not permitted",
        ),
        (asked(filters={"pool": "a.b"}), "needs.0.filters.pool: .* not a valid id"),
        (asked(filters={"tags": "red"}), "needs.0.filters.tags: Input should be a valid tuple"),
        (asked(filters={"not_self": True}), "not_self needs the asking agent in `by`"),
        ({**asked(), "budget": 0}, "budget: Input should be greater than or equal to 1"),
        ("charts", "payload: Input should be a valid dictionary"),
    ],
)
def test_a_bad_search_is_refused_with_its_reason(raw: object, why: str) -> None:
    """What cannot be searched is the asker's fault, and the message names the place and what would be right."""
    with pytest.raises(InvalidInputError, match=why):
        validate(Search, raw)


def test_all_filters_travel() -> None:
    """A search with every filter arrives as it was sent."""
    filters = Filters(online=False, pool="tables", tags=("a", "b"), version="2", not_self=True)
    search = Search(needs=(Need(text="数据 图表", filters=filters, k=100),), by=AgentId("me"), budget=7, purpose="goal-1")
    assert decode(Search, encode(search)) == search


def test_a_load_beyond_all_bounds_is_cut() -> None:
    """No count of an agent, however wrong, keeps it from renewing its lease."""
    assert Load(tasks=10**9, groups=10**9, slots=0) == Load(tasks=MAX_LOAD, groups=MAX_LOAD, slots=1)


def test_busy_is_tasks_for_each_slot() -> None:
    """Two of four slots taken is half busy; tasks that wait count too."""
    assert [Load(tasks=2, slots=4).busy, Load(tasks=6, slots=4).busy, Load().busy] == [0.5, 1.5, 0.0]
