"""What may be asked of discovery, and what is refused in words that help."""

from __future__ import annotations

from typing import Any

import pytest

from ioa.errors import InvalidInputError
from ioa.protocol.agents.search import Search
from ioa.protocol.cards import MAX_LOAD, Load
from ioa.protocol.codec import validate


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


def test_a_load_beyond_all_bounds_is_cut() -> None:
    """No count of an agent, however wrong, keeps it from renewing its lease."""
    assert Load(tasks=10**9, groups=10**9, slots=0) == Load(tasks=MAX_LOAD, groups=MAX_LOAD, slots=1)
