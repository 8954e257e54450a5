"""A language model as the brain sees it: messages go in, the text of one answer comes out.

The port promises nothing about the text. Whether it is JSON, legal or sensible is for the caller to check, so that the worst
model and the best one go through the same door.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Literal, Protocol

from pydantic import BaseModel


@dataclass(frozen=True)
class ChatMessage:
    """One message of the conversation with the model."""

    role: Literal["system", "user", "assistant"]
    content: str


@dataclass(frozen=True)
class AnswerLimits:
    """What one answer may cost. `timeout` covers the whole call with all its retries."""

    max_tokens: int
    timeout: timedelta
    temperature: float = 0.2


@dataclass(frozen=True)
class ModelAnswer:
    """What the model said.

    Attributes:
        text: The answer as it came; empty if the model said nothing.
        complete: False if the answer was cut at `max_tokens`.
        prompt_tokens: What the server counted for the messages, 0 if it does not count.
        answer_tokens: The same for the answer.
    """

    text: str
    complete: bool = True
    prompt_tokens: int = 0
    answer_tokens: int = 0


class ChatModel(Protocol):
    """Answer a conversation, if possible in the shape of a class."""

    async def answer(self, messages: Sequence[ChatMessage], shape: type[BaseModel], limits: AnswerLimits) -> ModelAnswer:
        """Ask the model once. `shape` says which JSON is wanted; the model is asked for it but not trusted to keep to it.

        Raises:
            UnavailableError: The model cannot be reached, is overloaded or too slow; a later call can help.
            ModelError: The server refuses the request; the same call will be refused again.
        """
