"""Requests and replies of discovery (paper, section 2.3.1)."""

from __future__ import annotations

from enum import StrEnum
from itertools import chain, zip_longest
from typing import Annotated, Literal

from pydantic import Field, StringConstraints, model_validator

from ioa.protocol.agents.outcomes import UNTRIED, Record
from ioa.protocol.cards import IDLE, AgentCard, Load, Tag
from ioa.protocol.ids import AgentIdField, PoolId, PoolIdField
from ioa.protocol.model import Instruction, Model
from ioa.protocol.usage import MAX_COUNT

MAX_NEEDS = 32
MAX_NEED_CHARS = 4_000
MAX_K = 100
MAX_BUDGET = MAX_NEEDS * MAX_K


class Signal(StrEnum):
    """Ways to find a card."""

    TEXT = "text"
    """Cosine of the need to the card's name, description and skills."""
    EXAMPLES = "examples"
    """Cosine of the need to the nearest example request of the card."""
    BM25 = "bm25"
    """Words in common, rare ones first."""


class Filters(Instruction):
    """Conditions that a hit must fulfil. An unknown filter is rejected, because an ignored filter returns unwanted agents.

    Attributes:
        online: Only agents with a valid lease.
        pool: Only replicas of this pool.
        tags: Only agents with all of these tags.
        version: Only cards of exactly this version.
        not_self: Not the agent that asks; needs `Search.by`.
    """

    online: bool = True
    pool: PoolIdField | None = None
    tags: Annotated[tuple[Tag, ...], Field(max_length=20)] = ()
    version: Annotated[str, Field(min_length=1, max_length=64)] | None = None
    not_self: bool = False


class Need(Model):
    """One thing that an agent is needed for. `k` is the maximum number of hits."""

    text: Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=MAX_NEED_CHARS)]
    keywords: Annotated[tuple[Annotated[str, Field(min_length=1, max_length=200)], ...], Field(max_length=50)] = ()
    filters: Filters = Filters()
    k: Annotated[int, Field(ge=1, le=MAX_K)] = 5


class Search(Model):
    """Find agents for each need.

    Attributes:
        exclude: Agents that must not be found.
        budget: Maximum length of the merged list. Default None: all hits.
        by: The agent that asks, for the filter `not_self`.
        purpose: Purpose of the search, such as a goal's id. It selects among equally busy replicas, so that different purposes are
            distributed, and the same purpose always selects the same replica.
    """

    needs: Annotated[tuple[Need, ...], Field(min_length=1, max_length=MAX_NEEDS)]
    exclude: Annotated[tuple[AgentIdField, ...], Field(max_length=1_000)] = ()
    budget: Annotated[int, Field(ge=1, le=MAX_BUDGET)] | None = None
    by: AgentIdField | None = None
    purpose: Annotated[str, Field(max_length=200)] = ""

    @model_validator(mode="after")
    def _has_an_asker(self) -> Search:
        if self.by is None and any(need.filters.not_self for need in self.needs):
            raise ValueError("the filter not_self needs the asking agent in `by`")
        return self


class SignalScore(Model):
    """The score of a hit by one signal.

    Attributes:
        raw: The signal's own score: a cosine, or the sum of BM25.
        fused: The same on the scale of all candidates of the need: 0.5 is their mean, and a sixth one standard deviation.
    """

    signal: Signal
    raw: float
    fused: float


class Shift(Model):
    """A soft adjustment of a hit's score, and the reason in words."""

    cause: Literal["load", "outcomes"]
    amount: float
    reason: str


class Why(Model):
    """Explanation of a hit's score: the match is the mean of the signals, and the score is the match plus all shifts.

    A missing signal did not find the agent among its best candidates, and counts as 0. A signal without data on the card, such as
    examples, is not counted.
    """

    match: float = 0.0
    signals: tuple[SignalScore, ...] = ()
    shifts: tuple[Shift, ...] = ()


class Hit(Model):
    """An agent that may fit: the least busy of the equal replicas of its pool.

    Attributes:
        score: The fused score with its soft adjustments; it orders the hits of its need only.
        similarity: The best cosine, -1 to 1, of the need to the card's text or to one of its examples: comparable across needs.
        matched_example: The example that is nearest to the need, if the card has any.
        online: Whether the agent's lease is valid.
        load: Its load at the last renewal of its lease.
        replicas: Number of equal replicas that it was selected from.
        record: Measured success of its pool, and the expected success for this need.
    """

    card: AgentCard
    score: float
    similarity: float
    matched_example: str = ""
    online: bool = True
    load: Load = IDLE
    replicas: Annotated[int, Field(ge=1, le=MAX_COUNT)] = 1
    record: Record = UNTRIED
    why: Why = Why()


class NeedHits(Model):
    """The hits of a need, best first, with at most one replica of each pool."""

    need: Need
    hits: tuple[Hit, ...]


class SearchResult(Model):
    """Hits grouped by need in the order given, and the budget of the search.

    If `complete` is false, the hits did not fit into one answer, and the last hits of needs are missing.
    """

    by_need: tuple[NeedHits, ...] = ()
    budget: int | None = None
    complete: bool = True

    @property
    def merged(self) -> tuple[Hit, ...]:
        """The best hit of each need, then the second of each, and so on; each pool once, at most as many as the budget.

        Any prefix covers all needs evenly.
        """
        merged: dict[PoolId, Hit] = {}
        for hit in chain.from_iterable(zip_longest(*(one.hits for one in self.by_need))):
            if hit is not None:
                merged.setdefault(hit.card.pool, hit)
        return tuple(merged.values())[: self.budget]


class AskIndexStatus(Model):
    """Read the state of discovery's index."""


class IndexStatus(Model):
    """The number of cards in the index of the answering replica."""

    cards: int
