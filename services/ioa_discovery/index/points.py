"""How a card lies in Qdrant, the same in its server and in its in-process engine.

A point for the agent, with the named vectors `text` and `bm25`, and a point for each of its example requests, with the named
vector `examples`. The examples are not one multivector, because the search tree of multivectors misses one hit in five. Every
point carries what a search may filter by. Booleans are stored as 0 and 1, because a filter on a boolean matches nothing in the
in-process engine. A card whose words are all stop words has no `bm25` vector.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

from ioa.ports.agent_index import Indexed, IndexEntry, Likeness, Signal
from ioa.protocol.cards import AgentCard
from ioa.protocol.ids import AgentId
from ioa.protocol.search import Filters
from ioa_discovery.index.shard_requests import CARD_FIELD, EXAMPLE_FIELD, Nearness, PointRecord, Terms
from ioa_discovery.vectors import packed_vector

KEYWORD_FIELDS = ("agent_id", "pool", "tags", "version")
ONLINE_FIELD = "online"
LAYOUT = 3
"""Raised whenever the same is stored in another way."""
CANDIDATE_FIELDS = ("agent_id", "pool", "has_examples")
"""A candidate without its score, field by field."""
STATE_FIELDS = ("agent_id", "fingerprint", "online")
_POINT_ID_BYTES = 8


def records(entry: IndexEntry) -> list[PointRecord]:
    """Return an agent's points."""
    filterable = {
        "agent_id": entry.card.agent_id,
        "pool": entry.card.pool,
        "tags": list(entry.card.tags),
        "version": entry.card.version,
        "online": int(entry.online),
        "has_examples": int(bool(entry.examples)),
    }
    whole = {"fingerprint": entry.fingerprint, CARD_FIELD: entry.card.model_dump_json()}
    text = _record(entry, 0, {Signal.TEXT.value: packed_vector(entry.text)}, filterable | whole)
    examples = [
        _record(entry, number, {Signal.EXAMPLES.value: packed_vector(vector)}, filterable)
        for number, vector in enumerate(entry.examples, 1)
    ]
    return [text, *examples]


def _record(entry: IndexEntry, number: int, dense: Mapping[str, bytes], payload: Mapping[str, Any]) -> PointRecord:
    """Make the point of the card (0) or of one of its examples. Its id follows from both, since an engine wants a number."""
    name = f"{entry.card.agent_id} {number}"
    point_id = int.from_bytes(hashlib.blake2b(name.encode(), digest_size=_POINT_ID_BYTES).digest(), "big")
    has_terms = not number and entry.terms.indices
    terms = Terms(entry.terms.indices, entry.terms.values) if has_terms else None
    return PointRecord(point_id, dense, terms, {**payload, EXAMPLE_FIELD: number})


def must_match(filters: Filters) -> tuple[tuple[str, str | int], ...]:
    """Return the payload fields and values that a hit must carry, all of them."""
    conditions: list[tuple[str, str | int]] = [("tags", tag) for tag in filters.tags]
    if filters.online:
        conditions.append((ONLINE_FIELD, 1))
    if filters.pool is not None:
        conditions.append(("pool", filters.pool))
    if filters.version is not None:
        conditions.append(("version", filters.version))
    return tuple(conditions)


def state(stored: Mapping[str, Any] | None) -> tuple[AgentId, Indexed]:
    """Read an agent's state from a point's payload."""
    fields = stored or {}
    return AgentId(fields["agent_id"]), Indexed(fields["fingerprint"], bool(fields["online"]))


def likeness(near: Nearness) -> Likeness:
    """Read what the engine says of an agent beside a need."""
    card = AgentCard.model_validate_json(near.card)
    # The engine may round a cosine to a little more than one.
    similarity = max(-1.0, min(1.0, max(near.text, near.example)))
    # A server can be asked between two writes of one card, of which the first has shortened its examples.
    return Likeness(card, similarity, "".join(card.examples[max(0, near.matched - 1) : near.matched]))
