"""How the model has served: counted so that nobody takes the rules' answers for the model's."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Literal

import structlog

from ioa.agent.agent_metrics import model_fallbacks
from ioa.ports.chat_model import ModelAnswer

log = structlog.get_logger(__name__)

Decision = Literal["form_team", "speak", "conclude", "approach"]


class Cause(StrEnum):
    """Why the model's answer was not taken."""

    USELESS_ANSWER = "useless_answer"
    UNAVAILABLE = "unavailable"
    REFUSED = "refused"
    TOO_SLOW = "too_slow"
    CUT = "cut"
    REJECTED = "rejected"
    NOTHING_LEGAL = "nothing_legal"


@dataclass
class Tally:
    """Count what the model was asked and how often its answer was replaced. One object may serve many brains."""

    decisions: Counter[Decision] = field(default_factory=Counter)
    fallbacks: Counter[tuple[Decision, Cause]] = field(default_factory=Counter)
    answers: int = 0
    repairs: int = 0
    prompt_tokens: int = 0
    cached_tokens: int = 0
    answer_tokens: int = 0
    reasoning_tokens: int = 0

    def count(self, answer: ModelAnswer) -> None:
        """Count an answer, whatever became of it."""
        self.answers += 1
        self.prompt_tokens += answer.prompt_tokens
        self.cached_tokens += answer.cached_tokens
        self.answer_tokens += answer.answer_tokens
        self.reasoning_tokens += answer.reasoning_tokens

    def summary(self) -> dict[str, object]:
        """All counts, as plain values for a log line; a fallback is named `decision:cause`."""
        return {
            "decisions": dict(self.decisions),
            "fallbacks": {f"{decision}:{cause}": count for (decision, cause), count in self.fallbacks.items()},
            "answers": self.answers,
            "repairs": self.repairs,
            "prompt_tokens": self.prompt_tokens,
            "cached_tokens": self.cached_tokens,
            "answer_tokens": self.answer_tokens,
            "reasoning_tokens": self.reasoning_tokens,
        }

    def fell_back(self, decision: Decision, cause: Cause, why: str) -> None:
        """Count a decision that the rules took in the model's place, and say so in the log."""
        self.fallbacks[decision, cause] += 1
        model_fallbacks.labels(decision, cause.value).inc()
        log.warning("model_fallback", decision=decision, cause=str(cause), content=why[:500])
