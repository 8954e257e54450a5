"""What is asked of discovery and what it answers (paper, section 2.3.1)."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, model_validator

from ioa.protocol.cards import AgentCard, Tag
from ioa.protocol.ids import AgentIdField, PoolIdField
from ioa.protocol.load import IDLE, Load
from ioa.protocol.model import Model
from ioa.protocol.outcomes import UNTRIED, Record
from ioa.protocol.usage import MAX_COUNT

MAX_NEEDS = 32
NEEDS_OF_ONE = 2
"""How many needs are looked for by what counts as one search: a goal has few parts."""
MAX_NEED_CHARS = 4_000
MAX_K = 100
MAX_BUDGET = MAX_NEEDS * MAX_K
NEEDS_FIELDS = frozenset({"needs", "characteristics"})
"""The fields of a search that list what somebody is needed for, as this system and as the paper writes it."""


class Signal(StrEnum):
    """What a card can be found by."""

    TEXT = "text"
    """Cosine of the need to the card's name, description and skills."""
    EXAMPLES = "examples"
    """Cosine of the need to the nearest example request of the card."""
    BM25 = "bm25"
    """Words in common, rare ones first."""


class Filters(Model):
    """What a hit must fulfil. A filter that is not known is refused: ignored, it would let those in whom it was to keep out.

    Attributes:
        online: Only agents whose lease stands.
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

    @model_validator(mode="before")
    @classmethod
    def _refuse_the_unknown(cls, data: object) -> object:
        unknown = sorted(str(name) for name in data if name not in cls.model_fields) if isinstance(data, dict) else []
        if unknown:
            raise ValueError(f"there is no filter {', '.join(unknown)[:200]!r}; there are {', '.join(cls.model_fields)}")
        return data


def _check_need(text: str) -> str:
    if not text.strip():
        raise ValueError("it is empty; say in words what somebody is needed for")
    if len(text) > MAX_NEED_CHARS:
        raise ValueError(f"it has {len(text):,} characters and {MAX_NEED_CHARS:,} are allowed; say it in a few sentences")
    return text


class Need(Model):
    """One thing somebody is needed for. `k` is how many hits it may have."""

    text: Annotated[str, AfterValidator(_check_need)]
    keywords: Annotated[tuple[Annotated[str, Field(min_length=1, max_length=200)], ...], Field(max_length=50)] = ()
    filters: Filters = Filters()
    k: Annotated[int, Field(ge=1, le=MAX_K)] = 5


class Search(Model):
    """Find agents for each need.

    The paper's flat list of `characteristics` is accepted in place of `needs`, each as a need of its own.

    Attributes:
        exclude: Agents that must not be found.
        budget: How many hits the merged list may hold; without one, all there are.
        by: The agent that asks, for the filter `not_self`.
        purpose: What the search is for, such as a goal's id. Of equally loaded replicas it decides, so that many purposes spread
            over all of them while one and the same always meets the same.
    """

    needs: Annotated[tuple[Need, ...], Field(min_length=1, max_length=MAX_NEEDS)]
    exclude: Annotated[tuple[AgentIdField, ...], Field(max_length=1_000)] = ()
    budget: Annotated[int, Field(ge=1, le=MAX_BUDGET)] | None = None
    by: AgentIdField | None = None
    purpose: Annotated[str, Field(max_length=200)] = ""

    @model_validator(mode="before")
    @classmethod
    def _accept_characteristics(cls, data: object) -> object:
        if isinstance(data, dict) and "needs" not in data and isinstance(data.get("characteristics"), (list, tuple)):
            return {**data, "needs": [{"text": text} for text in data["characteristics"]]}
        return data

    @model_validator(mode="after")
    def _somebody_asks(self) -> Search:
        if self.by is None and any(need.filters.not_self for need in self.needs):
            raise ValueError("the filter not_self leaves out who asks, and nobody is named in `by`")
        return self


class SignalScore(Model):
    """What one signal says of a hit.

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
    """Why a hit stands where it stands: its match is the mean of what the signals say, its score the match and all shifts.

    A signal that is missing did not have the agent among its best candidates, which counts as 0; one that the card gives nothing
    to look at, such as examples it does not have, is not counted.
    """

    match: float = 0.0
    signals: tuple[SignalScore, ...] = ()
    shifts: tuple[Shift, ...] = ()


class Hit(Model):
    """An agent that may fit: of the replicas of its pool that fit alike, the least loaded.

    Attributes:
        score: The fused score with its soft adjustments; it orders the hits of one need and means nothing across needs.
        similarity: The best cosine, -1 to 1, of the need to the card's text or to one of its examples: comparable across needs.
        matched_example: The example that is nearest to the need, if the card has any.
        online: Whether the agent's lease stands.
        load: How busy it said it was when it last renewed its lease.
        replicas: How many of its pool could have been named, itself counted.
        record: What is known of how its pool does, and how it is expected to do this.
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
    """The hits of one need, best first, at most one replica of a pool."""

    need: Need
    hits: tuple[Hit, ...]


class SearchResult(Model):
    """Hits grouped by need in the order asked, and one merged list in which each need has its turn, as long as the budget.

    Without `complete`, what was found did not fit into one answer, and the last hits of needs are missing.
    """

    by_need: tuple[NeedHits, ...]
    merged: tuple[Hit, ...]
    complete: bool = True


class AskIndexStatus(Model):
    """Read the state of discovery's index."""


class IndexStatus(Model):
    """The number of cards in the index of the answering replica, and the embedding model."""

    cards: int
    model_id: str
