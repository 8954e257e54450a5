"""How the model has served: counted so that nobody takes the rules' answers for the model's."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Literal

import structlog

from ioa.ports.chat_model import ModelAnswer

log = structlog.get_logger(__name__)

Decision = Literal["form_team", "plan", "speak", "decide", "conclude", "approach"]


class Cause(StrEnum):
    """Why the model's answer was not taken."""

    USELESS_ANSWER = "useless_answer"
    UNAVAILABLE = "unavailable"
    REFUSED = "refused"
    TOO_SLOW = "too_slow"
    CUT = "cut"
    REJECTED = "rejected"
    NOTHING_LEGAL = "nothing_legal"

    @property
    def is_away(self) -> bool:
        """Whether the model gave no answer at all, so that another time it may."""
        return self in (Cause.UNAVAILABLE, Cause.REFUSED, Cause.TOO_SLOW)


@dataclass
class ModelTally:
    """Count what the model was asked and what it did not decide. One object may serve many brains.

    `failures` counts how often the model did not answer since it last did.
    """

    decisions: Counter[Decision] = field(default_factory=Counter)
    undecided: Counter[tuple[Decision, Cause]] = field(default_factory=Counter)
    answers: int = 0
    failures: int = 0
    repairs: int = 0
    prompt_tokens: int = 0
    cached_tokens: int = 0
    answer_tokens: int = 0
    reasoning_tokens: int = 0

    def count(self, answer: ModelAnswer) -> None:
        """Count an answer, whatever became of it."""
        self.answers += 1
        self.failures = 0
        self.prompt_tokens += answer.prompt_tokens
        self.cached_tokens += answer.cached_tokens
        self.answer_tokens += answer.answer_tokens
        self.reasoning_tokens += answer.reasoning_tokens

    def missed(self) -> None:
        """Count that the model did not answer; an answer ends the count."""
        self.failures += 1

    def summary(self) -> dict[str, object]:
        """All counts, as plain values for a log line; what the model did not decide is named `decision:cause`."""
        return {
            "decisions": dict(self.decisions),
            "undecided": {f"{decision}:{cause}": count for (decision, cause), count in self.undecided.items()},
            "answers": self.answers,
            "repairs": self.repairs,
            "prompt_tokens": self.prompt_tokens,
            "cached_tokens": self.cached_tokens,
            "answer_tokens": self.answer_tokens,
            "reasoning_tokens": self.reasoning_tokens,
        }

    def not_decided(self, decision: Decision, cause: Cause, why: str, *, instead: str) -> None:
        """Count a decision that the model did not take, and say so in the log, with who or what is `instead` of it."""
        self.undecided[decision, cause] += 1
        log.warning("model_did_not_decide", decision=decision, cause=str(cause), instead=instead, content=why[:500])
