"""What work has cost: tokens of language models, and money; and how often a model failed. In whole numbers: sums are exact."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from ioa.protocol.model import OMITTED_IF_EMPTY, Model

MICROS = 1_000_000
"""Millionths in one unit of the currency that a goal's budget is given in."""

MAX_COUNT = 10**15
"""Sums stop here, so that no report, however wrong, makes a number that cannot travel."""

Count = Annotated[int, Field(ge=0, le=MAX_COUNT)]


class Usage(Model):
    """Tokens read and written, and what was paid, in millionths of the currency.

    `tokens_cached` are those of `tokens_in` that the model's server had read before, as far as it says so.
    `fallbacks` counts the decisions that a model was asked for and that rules took in its place.
    """

    tokens_in: Count = 0
    tokens_out: Count = 0
    cost_micros: Count = 0
    fallbacks: Count = 0
    tokens_cached: Count = 0

    @property
    def tokens(self) -> int:
        """All tokens, read and written; this sum, too, stops at what can travel."""
        return min(MAX_COUNT, self.tokens_in + self.tokens_out)

    def plus(self, other: Usage) -> Usage:
        """Both together."""
        return Usage(
            tokens_in=min(MAX_COUNT, self.tokens_in + other.tokens_in),
            tokens_out=min(MAX_COUNT, self.tokens_out + other.tokens_out),
            cost_micros=min(MAX_COUNT, self.cost_micros + other.cost_micros),
            fallbacks=min(MAX_COUNT, self.fallbacks + other.fallbacks),
            tokens_cached=min(MAX_COUNT, self.tokens_cached + other.tokens_cached),
        )

    def beyond(self, earlier: Usage) -> Usage:
        """Return what this total has more than an earlier one; a total that went back counts as nothing new."""
        return Usage(
            tokens_in=max(0, self.tokens_in - earlier.tokens_in),
            tokens_out=max(0, self.tokens_out - earlier.tokens_out),
            cost_micros=max(0, self.cost_micros - earlier.cost_micros),
            fallbacks=max(0, self.fallbacks - earlier.fallbacks),
            tokens_cached=max(0, self.tokens_cached - earlier.tokens_cached),
        )


NOTHING = Usage()


class Overhead(Model):
    """What of a usage came to nothing by itself; the rest went into what is said.

    Attributes:
        read: Answers by which a model wanted to read something before it decided.
        repair: Answers that could not be used, and went back to the model.
        refused: Messages that the group refused.
    """

    read: Usage = NOTHING
    repair: Usage = NOTHING
    refused: Usage = NOTHING

    @property
    def total(self) -> Usage:
        """All of it."""
        return self.read.plus(self.repair).plus(self.refused)

    def plus(self, other: Overhead) -> Overhead:
        """Both together."""
        return Overhead(
            read=self.read.plus(other.read), repair=self.repair.plus(other.repair), refused=self.refused.plus(other.refused)
        )


OverheadField = Annotated[Overhead | None, OMITTED_IF_EMPTY]
"""Where there is none, nothing travels."""

NO_OVERHEAD = Overhead()


def overhead_of_refused(usage: Usage, overhead: Overhead) -> Overhead:
    """Return the overhead of a message that was refused: all that it has cost."""
    return overhead.plus(Overhead(refused=usage.beyond(overhead.total)))
