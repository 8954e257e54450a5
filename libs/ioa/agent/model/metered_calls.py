"""Calls of a language model, counted: their cost in the meter of the decision or task, their outcomes for the log."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from enum import StrEnum

from ioa.agent.model.budget import Budget
from ioa.ports.chat_model import ModelAnswer
from ioa.ports.meter import Meter
from ioa.protocol.decisions import ModelCall
from ioa.protocol.operation.trace import call_attributes, name_of_call, usage_attributes
from ioa.protocol.usage import NOTHING, Usage
from ioa.telemetry import live_spans

MAX_REPAIRS = 2
"""Maximum useless answers to one question that go back to the model."""


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


class MeteredCalls:
    """The calls for one question."""

    def __init__(self, budget: Budget, meter: Meter, purpose: str) -> None:
        self._budget, self._meter, self._purpose = budget, meter, purpose
        self._noted = asyncio.get_running_loop().time()
        self._spent = NOTHING

    async def count(self, answering: Awaitable[ModelAnswer]) -> ModelAnswer:
        """Wait for an answer, and count its cost."""
        model = self._budget.model
        with live_spans.span(name_of_call(model), {**call_attributes(model), "ioa.call_purpose": self._purpose}) as live:
            answer = await answering
            self._spent = self._budget.usage_of(answer)
            live.note(usage_attributes(self._spent))
        self._meter.add(self._spent)
        return answer

    def note(self, outcome: str, about: str = "") -> Usage:
        """Record the outcome of the last call; return its cost."""
        spent, began, now = self._spent, self._noted, asyncio.get_running_loop().time()
        self._spent, self._noted = NOTHING, now
        took, live = round((now - began) * 1_000), live_spans.is_traced()
        call = ModelCall(purpose=self._purpose, came_to=outcome, about=about, milliseconds=took, usage=spent, live=live)
        self._meter.note(call)
        return spent
