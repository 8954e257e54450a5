"""The index of agent cards: the port of discovery's search engines.

An index returns the raw scores of each signal; its caller fuses them. So every engine gives the same answer, and a hit can be
explained signal by signal. The index is derived from the registry. It is opened for one embedding model.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from ioa.ports.embedder import Vector
from ioa.protocol.agents.search import Filters
from ioa.protocol.agents.search import Signal as Signal
from ioa.protocol.cards import AgentCard
from ioa.protocol.ids import AgentId, PoolId

SCHEMA_VERSION = 4
"""Version of the stored data per card. Each version has a store of its own."""


@dataclass(frozen=True, slots=True)
class SparseVector:
    """Weights of terms. `indices` are distinct 32-bit hashes of terms; `values` are their weights."""

    indices: tuple[int, ...]
    values: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class IndexEntry:
    """A card with its search data.

    Attributes:
        text: Vector of the card's own text.
        examples: Vectors of its example requests, in the card's order; may be empty.
        terms: BM25 weights of the card's words; may be empty.
        fingerprint: Digest of the card and the model. An entry with an equal fingerprint is up to date.
    """

    card: AgentCard
    online: bool
    text: Vector
    examples: tuple[Vector, ...]
    terms: SparseVector
    fingerprint: str


@dataclass(frozen=True, slots=True)
class IndexQuery:
    """One need. Each signal returns at most `limit` candidates."""

    dense: Vector
    terms: SparseVector
    filters: Filters
    exclude: tuple[AgentId, ...]
    limit: int


class Candidate(NamedTuple):
    """The best agent of a pool by one signal, with that signal's raw score.

    `has_examples` is false if `Signal.EXAMPLES` cannot find the agent, so that a missing score is not taken for a bad one.
    """

    agent_id: AgentId
    pool: PoolId
    has_examples: bool
    score: float


class Likeness(NamedTuple):
    """A card and its similarity to a need.

    `similarity` is the best cosine, -1 to 1, of the need to the card's text or to one of its examples; `matched_example` is the
    nearest example, empty without examples.
    """

    card: AgentCard
    similarity: float
    matched_example: str


@dataclass(frozen=True, slots=True)
class Indexed:
    """The state of one agent in the index."""

    fingerprint: str
    online: bool


Candidates = Mapping[Signal, Sequence[Candidate]]
"""Candidates of each signal, best first, at most one of each pool.

A signal returns only cards that have its data: an example, or a word in common.
"""


class AgentIndex(Protocol):
    """Store entries and find the nearest by each signal."""

    async def put(self, entries: Sequence[IndexEntry]) -> None:
        """Insert the entries, replacing the present entries of the same agents. They can be found when this returns."""

    async def set_online(self, agent_ids: Sequence[AgentId], online: bool) -> None:
        """Record whether agents are online; does nothing for agents that are not in the index."""

    async def remove(self, agent_ids: Sequence[AgentId]) -> None:
        """Remove agents; does nothing for agents that are not in the index."""

    async def search(self, query: IndexQuery) -> Candidates:
        """Return the agents that a query finds."""

    async def compare(self, need: Vector, agent_ids: Sequence[AgentId]) -> Mapping[AgentId, Likeness]:
        """Return the similarity of agents to a need. Agents that are not in the index are left out."""

    async def indexed(self) -> Mapping[AgentId, Indexed]:
        """Return the state of every agent in the index."""
