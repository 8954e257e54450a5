"""Usage of language models: tokens, cost and fallbacks, in whole numbers."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from ioa.protocol.model import Model

MICROS = 1_000_000
"""Millionths in one unit of the currency of a budget."""

MAX_COUNT = 10**15
"""Maximum of a sum, so that it can be encoded."""

Count = Annotated[int, Field(ge=0, le=MAX_COUNT)]


class Usage(Model):
    """Tokens, and cost in millionths of the currency.

    `tokens_cached` is the part of `tokens_in` that the model's server had cached. `fallbacks` is the number of decisions by
    rules in place of a failed model.
    """

    tokens_in: Count = 0
    tokens_out: Count = 0
    cost_micros: Count = 0
    fallbacks: Count = 0
    tokens_cached: Count = 0

    @property
    def tokens(self) -> int:
        """All tokens, at most `MAX_COUNT`."""
        return min(MAX_COUNT, self.tokens_in + self.tokens_out)

    def plus(self, other: Usage) -> Usage:
        """Return the sum; without more usage this object itself."""
        more = other.__dict__
        if not any(more.values()):
            return self
        return Usage.of_valid(**{name: min(MAX_COUNT, count + more[name]) for name, count in self.__dict__.items()})

    def beyond(self, earlier: Usage) -> Usage:
        """Return the difference to an earlier total, at least 0."""
        less = earlier.__dict__
        return Usage.of_valid(**{name: max(0, count - less[name]) for name, count in self.__dict__.items()})


NOTHING = Usage()
