"""What is asked of discovery and what it answers (paper, section 2.3.1)."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, model_validator

from ioa.protocol.cards import AgentCard, Tag
from ioa.protocol.ids import AgentIdField, PoolIdField
from ioa.protocol.model import Model

MAX_NEEDS = 32
MAX_NEED_CHARS = 4_000
MAX_K = 100


class Filters(Model):
    """What a hit must fulfil."""

    online: bool = True
    pool: PoolIdField | None = None
    tags: Annotated[tuple[Tag, ...], Field(max_length=20)] = ()


class Need(Model):
    """One thing somebody is needed for."""

    text: Annotated[str, Field(min_length=1, max_length=MAX_NEED_CHARS)]
    keywords: Annotated[tuple[Annotated[str, Field(min_length=1, max_length=200)], ...], Field(max_length=50)] = ()
    filters: Filters = Filters()
    k: Annotated[int, Field(ge=1, le=MAX_K)] = 5


class Search(Model):
    """Find agents for each need. `exclude` names agents that must not be found, such as the one who asks.

    The paper's flat list of `characteristics` is accepted in place of `needs`, each as a need of its own.
    """

    needs: Annotated[tuple[Need, ...], Field(min_length=1, max_length=MAX_NEEDS)]
    exclude: Annotated[tuple[AgentIdField, ...], Field(max_length=1_000)] = ()

    @model_validator(mode="before")
    @classmethod
    def _accept_characteristics(cls, data: object) -> object:
        if isinstance(data, dict) and "needs" not in data and isinstance(data.get("characteristics"), (list, tuple)):
            return {**data, "needs": [{"text": text} for text in data["characteristics"]]}
        return data


class Hit(Model):
    """An agent that may fit.

    Attributes:
        score: The fused score; it orders the hits of one need and means nothing across needs.
        similarity: The best cosine, -1 to 1, of the need to the card's text or to one of its examples: comparable across needs.
        matched_example: The example that is nearest to the need, if the card has any.
    """

    card: AgentCard
    score: float
    similarity: float
    matched_example: str = ""


class NeedHits(Model):
    """The hits of one need, best first, at most one replica of a pool."""

    need: Need
    hits: tuple[Hit, ...]


class SearchResult(Model):
    """Hits grouped by need in the order asked, and one merged list in which each need has its turn."""

    by_need: tuple[NeedHits, ...]
    merged: tuple[Hit, ...]


class AskIndexStatus(Model):
    """Ask how discovery's index stands."""


class IndexStatus(Model):
    """How many cards the index of the answering replica holds, and which model embedded them."""

    cards: int
    model_id: str
