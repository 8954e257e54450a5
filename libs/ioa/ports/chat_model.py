"""A language model as the brain sees it: messages go in, the text of one answer comes out.

The port promises nothing about the text. Whether it is JSON, legal or sensible is for the caller to check, so that the worst
model and the best one go through the same door. It promises that nothing is lost in silence: an answer says how it ended.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Literal, Protocol

from pydantic import BaseModel

from ioa.errors import ModelError

Finish = Literal["stop", "length", "tools", "filter", "other"]
"""How an answer ended: by itself, at the limit of tokens, with calls of tools, by a filter of content, or in a way nobody knows."""

Effort = Literal["minimal", "low", "medium", "high"]
"""How much a model that reasons is to reason."""


class PromptTooLongError(ModelError):
    """The request does not fit into the model's context. `ChatModel.context_tokens` knows better now: make a shorter prompt."""


@dataclass(frozen=True)
class ChatMessage:
    """One message of the conversation with the model."""

    role: Literal["system", "user", "assistant"]
    content: str


@dataclass(frozen=True)
class AnswerLimits:
    """What one answer may cost.

    Attributes:
        max_tokens: Where the server cuts the answer; what a model reasons before it answers counts.
        timeout: For the whole call with all its retries.
        effort: How much to reason; None leaves it to the model's settings.
    """

    max_tokens: int
    timeout: timedelta
    temperature: float = 0.2
    effort: Effort | None = None


@dataclass(frozen=True)
class ModelAnswer:
    """What the model said.

    Attributes:
        text: The answer as it came; empty if the model said nothing.
        finish: How it ended. After `length` the rest of it is missing, however well it reads.
        prompt_tokens: What the server counted for the messages, 0 if it does not count.
        answer_tokens: The same for the answer, its reasoning included.
        cached_tokens: Those of `prompt_tokens` that the server had read before.
        reasoning_tokens: Those of `answer_tokens` that are not in `text`.
    """

    text: str
    finish: Finish = "stop"
    prompt_tokens: int = 0
    answer_tokens: int = 0
    cached_tokens: int = 0
    reasoning_tokens: int = 0


class ChatModel(Protocol):
    """Answer a conversation, if possible in the shape of a class."""

    async def context_tokens(self) -> int:
        """How many tokens a request and its answer may have together, as far as is known; what is learned makes it smaller."""

    async def answer(self, messages: Sequence[ChatMessage], shape: type[BaseModel], limits: AnswerLimits) -> ModelAnswer:
        """Ask the model once. `shape` says which JSON is wanted; the model is asked for it but not trusted to keep to it.

        Raises:
            PromptTooLongError: The messages and the answer do not fit into the context; a shorter prompt may.
            UnavailableError: The model cannot be reached, is overloaded or too slow; a later call can help.
            ModelError: The server refuses the request; the same call will be refused again.
        """
