"""What the model brain may spend on one decision."""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import datetime, timedelta

from ioa.ports.chat_model import ModelAnswer
from ioa.protocol.usage import MAX_COUNT, Usage

_RESERVE_TOKENS = 2_000
_LEAST_PROMPT_TOKENS = 500


@dataclass(frozen=True)
class Budget:
    """Bounds of one decision. Tokens of what is sent are estimated (`tokens_of`), so that a prompt is the same on every run.

    Attributes:
        max_prompt: The most tokens of a prompt, with what was read for it, however large the model's context.
        max_answer: Where the server cuts an answer, in tokens; what a model reasons before it answers counts.
        repairs: How often a useless answer goes back to the model.
        calls: How often the model may act while it forms a team (paper, appendix A.2.3).
        hits: Agents to ask discovery for, per need.
        answer_timeout: For one answer, with the retries of its transport, once its turn has come.
        decision_timeout: For one decision with its repairs and reads, and for a model that is away.
            A floor that cannot be kept longer ends it too.
        temperature: How freely the model chooses.
        prompt_price: What a million tokens of prompts cost, in the currency of the goals' budgets.
        cached_price: The same of those that the server had read before; None: as the others.
        answer_price: What a million tokens of answers cost.
        now: What prompts tell as the time; None: when the floor was granted.
    """

    max_prompt: int = 100_000
    max_answer: int = 16_000
    repairs: int = 2
    calls: int = 10
    hits: int = 5
    answer_timeout: timedelta = timedelta(seconds=120)
    decision_timeout: timedelta = timedelta(seconds=600)
    temperature: float = 0.2
    prompt_price: float = 0.0
    cached_price: float | None = None
    answer_price: float = 0.0
    now: datetime | None = None

    def answer_tokens(self, context: int) -> int:
        """Return the limit of an answer by a model with such a context: a quarter of a small one."""
        return min(self.max_answer, context // 4)

    def request_tokens(self, context: int) -> int:
        """Return what a request may hold: the context without an answer and a reserve for the schema and what estimates miss."""
        return max(_LEAST_PROMPT_TOKENS, context - self.answer_tokens(context) - min(_RESERVE_TOKENS, context // 8))

    def prompt_tokens(self, context: int) -> int:
        """Return what a prompt may hold for a model with such a context, with all that was read and repaired for a decision."""
        return min(self.max_prompt, self.request_tokens(context))

    def usage_of(self, answer: ModelAnswer) -> Usage:
        """Return what an answer has cost. A price for a million tokens is the price of one token in millionths."""
        cached = min(answer.cached_tokens, answer.prompt_tokens)
        cached_price = self.prompt_price if self.cached_price is None else self.cached_price
        cost = (
            (answer.prompt_tokens - cached) * self.prompt_price + cached * cached_price + answer.answer_tokens * self.answer_price
        )
        return Usage(
            tokens_in=answer.prompt_tokens,
            tokens_cached=cached,
            tokens_out=answer.answer_tokens,
            cost_micros=math.ceil(min(cost, MAX_COUNT)),
        )


def tokens_of(text: str) -> int:
    """Estimate tokens by bytes: high for Latin letters, about right for Chinese, and the same on every run."""
    return -(-len(text.encode("utf-8", "replace")) // 3)
