"""Layout of a card in Qdrant.

A point for the agent, with the named vectors `text` and `bm25`, and a point for each of its example requests, with the named
vector `examples`. The examples are not one multivector, because the search tree of multivectors misses one hit in five. Every
point carries the fields that a search filters by. A card whose words are all stop words has no `bm25` vector.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

from ioa.errors import MissingExtraError
from ioa.ports.agent_index import Candidate, Indexed, IndexEntry, Likeness, Signal, SparseVector
from ioa.protocol.cards import AgentCard
from ioa.protocol.ids import AgentId
from ioa.protocol.search import Filters

try:
    from qdrant_client import models
except ImportError as error:
    raise MissingExtraError.of("The Qdrant client", "discovery") from error

AGENT_FIELD, POOL_FIELD, ONLINE_FIELD, CARD_FIELD = "agent_id", "pool", "online", "card"
EXAMPLE_FIELD = "example"
"""Number of the example that a point stores, from 1; 0 for the point of the card."""
EXAMPLES_PER_AGENT = 50
"""Maximum examples per card."""
KEYWORD_FIELDS = (AGENT_FIELD, POOL_FIELD, "tags", "version")
CANDIDATE_FIELDS = (AGENT_FIELD, POOL_FIELD, "has_examples")
STATE_FIELDS = (AGENT_FIELD, "fingerprint", ONLINE_FIELD)
LAYOUT = 4
"""Version of this layout. Each version has a collection of its own."""
_POINT_ID_BYTES = 8


def create_points(entry: IndexEntry) -> list[models.PointStruct]:
    """Return an agent's points."""
    card = entry.card
    filterable = {
        AGENT_FIELD: card.agent_id,
        POOL_FIELD: card.pool,
        "tags": list(card.tags),
        "version": card.version,
        ONLINE_FIELD: entry.online,
        "has_examples": bool(entry.examples),
    }
    whole: dict[str, models.Vector] = {Signal.TEXT.value: list(entry.text)}
    if entry.terms.indices:
        whole[Signal.BM25.value] = sparse(entry.terms)
    stored = {**filterable, "fingerprint": entry.fingerprint, CARD_FIELD: card.model_dump_json()}
    return [
        _point(card.agent_id, 0, whole, stored),
        *(
            _point(card.agent_id, number, {Signal.EXAMPLES.value: list(vector)}, filterable)
            for number, vector in enumerate(entry.examples, 1)
        ),
    ]


def sparse(terms: SparseVector) -> models.SparseVector:
    """Return terms as the client's sparse vector."""
    return models.SparseVector(indices=list(terms.indices), values=list(terms.values))


def surplus_ids(entry: IndexEntry) -> list[models.ExtendedPointId]:
    """Return the ids of examples that an earlier card of the agent may have had."""
    return [_point_id(entry.card.agent_id, number) for number in range(len(entry.examples) + 1, EXAMPLES_PER_AGENT + 1)]


def _point_id(agent_id: AgentId, number: int) -> int:
    return int.from_bytes(hashlib.blake2b(f"{agent_id} {number}".encode(), digest_size=_POINT_ID_BYTES).digest(), "big")


def _point(agent_id: AgentId, number: int, vectors: dict[str, models.Vector], payload: Mapping[str, Any]) -> models.PointStruct:
    return models.PointStruct(id=_point_id(agent_id, number), vector=vectors, payload={**payload, EXAMPLE_FIELD: number})


def matching(filters: Filters, exclude: Sequence[AgentId]) -> models.Filter:
    """Return the filter of the points that a search may find."""
    wanted: list[tuple[str, str | bool]] = [("tags", tag) for tag in filters.tags]
    if filters.online:
        wanted.append((ONLINE_FIELD, True))
    if filters.pool is not None:
        wanted.append((POOL_FIELD, filters.pool))
    if filters.version is not None:
        wanted.append(("version", filters.version))
    must: list[models.Condition] = [models.FieldCondition(key=key, match=models.MatchValue(value=value)) for key, value in wanted]
    return models.Filter(must=must, must_not=[_any_agent(exclude)] if exclude else None)


def of_agents(agent_ids: Sequence[AgentId]) -> models.Filter:
    """Return the filter of some agents' points."""
    return models.Filter(must=[_any_agent(agent_ids)])


def _any_agent(agent_ids: Sequence[AgentId]) -> models.FieldCondition:
    return models.FieldCondition(key=AGENT_FIELD, match=models.MatchAny(any=list(map(str, agent_ids))))


def candidate(point: models.ScoredPoint) -> Candidate:
    """Read a candidate from a point that a search found."""
    fields = point.payload or {}
    return Candidate._make((*(fields[name] for name in CANDIDATE_FIELDS), point.score))


def state(stored: Mapping[str, Any] | None) -> tuple[AgentId, Indexed]:
    """Read an agent's state from a point's payload."""
    fields = stored or {}
    return AgentId(fields[AGENT_FIELD]), Indexed(fields["fingerprint"], fields[ONLINE_FIELD])


def likeness(text: models.ScoredPoint, example: models.ScoredPoint | None) -> Likeness:
    """Read an agent's similarity to a need from the point of its card and the point of its nearest example."""
    card = AgentCard.model_validate_json((text.payload or {})[CARD_FIELD])
    # A search between two writes of one card can find an example that the card no longer has.
    number = (example.payload or {})[EXAMPLE_FIELD] if example is not None else 0
    matched = "".join(card.examples[max(0, number - 1) : number])
    # The server may round a cosine to slightly more than one.
    similarity = max(text.score, example.score if example is not None else -1.0)
    return Likeness(card, max(-1.0, min(1.0, similarity)), matched)
