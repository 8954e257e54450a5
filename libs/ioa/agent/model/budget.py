"""What the model brain may spend on one decision."""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import timedelta

from ioa.ports.chat_model import ModelAnswer
from ioa.protocol.usage import Usage


@dataclass(frozen=True)
class Budget:
    """Bounds of one decision; the defaults suit a model with a context of 16,000 tokens or more.

    Attributes:
        prompt_chars: The most that a prompt's data may hold; about four characters are a token.
        answer_tokens: Where the server cuts an answer.
        content_chars: The most that is kept of one text in an answer.
        thought_chars: Room to think before deciding; 0 leaves it out.
        max_tasks: Tasks in one assignment, and needs in one search.
        repairs: How often a useless answer goes back to the model.
        calls: How often the model may act while it forms a team (paper, appendix A.2.3).
        hits: Agents to ask discovery for, per need.
        weak_similarity: A need whose best hit is no closer than this may be reported as one that nobody serves.
        answer_timeout: For one answer, with the retries of its transport.
        decision_timeout: For one decision with its repairs; it must lie well below the group's floor timeout.
        temperature: How freely the model chooses.
        prompt_price: What a million tokens of prompts cost, in the currency of the goals' budgets.
        answer_price: What a million tokens of answers cost.
    """

    prompt_chars: int = 32_000
    answer_tokens: int = 2_000
    content_chars: int = 8_000
    thought_chars: int = 500
    max_tasks: int = 8
    repairs: int = 2
    calls: int = 10
    hits: int = 5
    weak_similarity: float = 0.35
    answer_timeout: timedelta = timedelta(seconds=30)
    decision_timeout: timedelta = timedelta(seconds=45)
    temperature: float = 0.2
    prompt_price: float = 0.0
    answer_price: float = 0.0

    def usage_of(self, answer: ModelAnswer) -> Usage:
        """Return what an answer has cost. A price for a million tokens is the price of one token in millionths."""
        cost = answer.prompt_tokens * self.prompt_price + answer.answer_tokens * self.answer_price
        return Usage(tokens_in=answer.prompt_tokens, tokens_out=answer.answer_tokens, cost_micros=math.ceil(cost))
