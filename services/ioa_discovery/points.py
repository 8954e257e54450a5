"""How a card lies in Qdrant, the same in its server and in its in-process engine.

A point per agent, its id derived from the agent's; `text` and `bm25` as named vectors, `examples` as a multivector compared
by its nearest member. Booleans are stored as 0 and 1, because a filter on a boolean matches nothing in the in-process engine.
A card without examples has no `examples` vector, one whose words are all stop words no `bm25` vector.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import Any, cast

from ioa.ports.agent_index import Candidate, Indexed, IndexEntry, SparseVector
from ioa.protocol.cards import AgentCard
from ioa.protocol.ids import AgentId, PoolId
from ioa.protocol.search import Filters

KEYWORD_FIELDS = ("agent_id", "pool", "tags", "version")
ONLINE_FIELD = "online"
CANDIDATE_FIELDS = ["agent_id", "pool", "has_examples"]
STATE_FIELDS = ["agent_id", "fingerprint", "online"]
_NAMESPACE = uuid.UUID("6f0f6b5e-5d3c-5f0a-9c0e-6a1b1f0a7c11")


def point_id(agent_id: AgentId) -> str:
    """Derive the point's id from the agent's, since an engine wants a UUID."""
    return str(uuid.uuid5(_NAMESPACE, agent_id))


def payload(entry: IndexEntry) -> dict[str, Any]:
    """Return what is stored beside the vectors."""
    return {
        "agent_id": entry.card.agent_id,
        "pool": entry.card.pool,
        "tags": list(entry.card.tags),
        "version": entry.card.version,
        "online": int(entry.online),
        "has_examples": int(bool(entry.examples)),
        "fingerprint": entry.fingerprint,
        "card": entry.card.model_dump_json(),
    }


def vectors(entry: IndexEntry) -> dict[str, list[float] | list[list[float]]]:
    """Return the dense named vectors."""
    text: dict[str, list[float] | list[list[float]]] = {"text": list(entry.text)}
    return text | {"examples": [list(example) for example in entry.examples]} if entry.examples else text


def must_match(filters: Filters) -> list[tuple[str, str | int]]:
    """Return the payload fields and values that a hit must carry, all of them."""
    conditions: list[tuple[str, str | int]] = [("tags", tag) for tag in filters.tags]
    if filters.online:
        conditions.append(("online", 1))
    if filters.pool is not None:
        conditions.append(("pool", filters.pool))
    if filters.version is not None:
        conditions.append(("version", filters.version))
    return conditions


def candidate(stored: Mapping[str, Any] | None, score: float) -> Candidate:
    """Read a candidate from a point's payload."""
    fields = stored or {}
    return Candidate(AgentId(fields["agent_id"]), PoolId(fields["pool"]), bool(fields["has_examples"]), score)


def state(stored: Mapping[str, Any] | None) -> tuple[AgentId, Indexed]:
    """Read an agent's state from a point's payload."""
    fields = stored or {}
    return AgentId(fields["agent_id"]), Indexed(fields["fingerprint"], bool(fields["online"]))


def entry(stored: Mapping[str, Any] | None, named: object) -> IndexEntry:
    """Read an entry from a point's payload and dense vectors. Its terms are not read back: nobody asks for them."""
    fields = stored or {}
    dense = cast(Mapping[str, Any], named)
    return IndexEntry(
        card=AgentCard.model_validate_json(fields["card"]),
        online=bool(fields["online"]),
        text=dense["text"],
        examples=tuple(dense.get("examples", ())),
        terms=SparseVector((), ()),
        fingerprint=fields["fingerprint"],
    )
