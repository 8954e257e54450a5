"""Calls of a language model within their limits: prices and budgets, the cost in the meter, the outcomes for the log."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum

from ioa.ports.chat_model import ModelAnswer
from ioa.ports.meter import Meter
from ioa.protocol.decisions import ModelCall
from ioa.protocol.operation.trace import call_attributes, name_of_call, usage_attributes
from ioa.protocol.usage import MAX_COUNT, NOTHING, Usage
from ioa.telemetry import live_spans

MAX_REPAIRS = 2
"""Maximum useless answers to one question that go back to the model."""
_RESERVE_TOKENS = 2_000
_LEAST_PROMPT_TOKENS = 500


@dataclass(frozen=True)
class Budget:
    """Limits of a decision. `estimate_tokens` estimates the tokens of prompts, so that all runs have the same prompts.

    Attributes:
        max_prompt: Maximum tokens of a prompt, with all that was read for it.
        max_answer: Maximum tokens of an answer, including its reasoning.
        answer_timeout: Timeout of an answer with the retries of its transport, without the time in the model's queue.
        decision_timeout: Timeout of a decision with its repairs and reads, and of waiting for an unavailable model.
        prompt_price: Price of a million tokens of prompts, in the currency of the goals' budgets.
        cached_price: The same for tokens that the server had in its cache; None: `prompt_price`.
        answer_price: Price of a million tokens of answers.
        model: Name of the model, for traces.
    """

    max_prompt: int = 100_000
    max_answer: int = 16_000
    answer_timeout: timedelta = timedelta(seconds=120)
    decision_timeout: timedelta = timedelta(seconds=600)
    prompt_price: float = 0.0
    cached_price: float | None = None
    answer_price: float = 0.0
    model: str = "model"

    def answer_tokens(self, context: int) -> int:
        """Return the maximum tokens of an answer; at most a quarter of the model's context."""
        return min(self.max_answer, context // 4)

    def prompt_tokens(self, context: int) -> int:
        """Return the maximum tokens of a prompt: the context without the answer and a reserve for the schema."""
        free = context - self.answer_tokens(context) - min(_RESERVE_TOKENS, context // 8)
        return min(self.max_prompt, max(_LEAST_PROMPT_TOKENS, free))

    def count_usage(self, answer: ModelAnswer) -> Usage:
        """Return the cost of an answer. Prices are for a million tokens, so a token costs as many millionths."""
        cached = min(answer.cached_tokens, answer.prompt_tokens)
        cached_price = self.prompt_price if self.cached_price is None else self.cached_price
        prompt_cost = (answer.prompt_tokens - cached) * self.prompt_price + cached * cached_price
        cost = math.ceil(min(prompt_cost + answer.answer_tokens * self.answer_price, MAX_COUNT))
        return Usage(tokens_in=answer.prompt_tokens, tokens_cached=cached, tokens_out=answer.answer_tokens, cost_micros=cost)


def estimate_tokens(*texts: str) -> int:
    """Estimate the tokens of texts by their bytes: too many for Latin letters, about right for Chinese."""
    return sum(-(-len(text.encode("utf-8", "replace")) // 3) for text in texts)


class Cause(StrEnum):
    """Why an answer of the model was not used."""

    USELESS_ANSWER = "useless_answer"
    UNAVAILABLE = "unavailable"
    REFUSED = "refused"
    TOO_SLOW = "too_slow"
    CUT = "cut"
    REJECTED = "rejected"
    NOTHING_LEGAL = "nothing_legal"

    @property
    def is_away(self) -> bool:
        """Whether the model gave no answer at all, so that a later request can succeed."""
        return self in (Cause.UNAVAILABLE, Cause.REFUSED, Cause.TOO_SLOW)


@dataclass
class MeteredCalls:
    """The calls for one question."""

    budget: Budget
    meter: Meter
    purpose: str

    def __post_init__(self) -> None:
        self._noted = asyncio.get_running_loop().time()
        self._spent = NOTHING

    async def count(self, answering: Awaitable[ModelAnswer]) -> ModelAnswer:
        """Wait for an answer, and count its cost."""
        model = self.budget.model
        with live_spans.span(name_of_call(model), {**call_attributes(model), "ioa.call_purpose": self.purpose}) as live:
            answer = await answering
            self._spent = self.budget.count_usage(answer)
            live.note(usage_attributes(self._spent))
        self.meter.add(self._spent)
        return answer

    def note(self, outcome: str, about: str = "") -> Usage:
        """Record the outcome of the last call; return its cost."""
        spent, began, now = self._spent, self._noted, asyncio.get_running_loop().time()
        self._spent, self._noted = NOTHING, now
        took, live = round((now - began) * 1_000), live_spans.is_traced()
        call = ModelCall(purpose=self.purpose, came_to=outcome, about=about, milliseconds=took, usage=spent, live=live)
        self.meter.note(call)
        return spent
