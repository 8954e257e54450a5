"""The port of language models: a conversation in, one answer out, as text or as calls of tools.

The caller checks texts and arguments of tools: they may be neither JSON nor legal. An answer names how it ended.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, replace
from datetime import timedelta
from itertools import count
from typing import Any, Literal, Protocol

from pydantic import BaseModel

from ioa.errors import InvalidInputError, ModelError

Finish = Literal["stop", "length", "tools", "filter", "other"]
"""How an answer ended: normally, at the token limit, with calls of tools, by a content filter, or otherwise."""

HEARD_CHARS = 4_000
"""Maximum characters of a partial answer that a model must report: its end."""

Hear = Callable[[str], None]
"""Called with the partial text of an answer, at least its last `HEARD_CHARS`. After a retry the text starts again."""

current_user: ContextVar[str] = ContextVar("current_user", default="")
"""The user for whose goal the current task works. Shared models serve users round-robin by it; a task inherits its creator's."""


class PromptTooLongError(ModelError):
    """The request does not fit into the model's context: make a shorter prompt.

    Attributes:
        context: Tokens that this request may have, if its texts have more tokens than estimated; None:
            `ChatModel.context_tokens`, which the model has corrected.
    """

    def __init__(self, message: str, *, context: int | None = None) -> None:
        super().__init__(message)
        self.context = context


@dataclass(frozen=True)
class Tool:
    """A tool that the model may call. `parameters` is the JSON schema of an object."""

    name: str
    description: str
    parameters: Mapping[str, Any]


@dataclass(frozen=True)
class ToolCall:
    """A call of a tool.

    Attributes:
        call_id: Unique among the calls of a conversation.
        name: As the model wrote it; there may be no such tool.
        arguments: JSON text as the model wrote it, unchecked.
    """

    call_id: str
    name: str
    arguments: str


@dataclass(frozen=True)
class ChatMessage:
    """One message of the conversation with the model.

    Attributes:
        tool_calls: The model's calls, in a message of the `assistant`.
        tool_call_id: The call that a message of the role `tool` answers. Each call is answered before any other message.
    """

    role: Literal["system", "user", "assistant", "tool"]
    content: str
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str = ""


@dataclass(frozen=True)
class AnswerLimits:
    """Limits of an answer.

    Attributes:
        max_tokens: Maximum tokens of the answer, including its reasoning.
        timeout: Timeout of the call with its retries, without the time in the model's queue.
        cache_key: Equal for requests with the same beginning, for the provider's prompt cache.
    """

    max_tokens: int
    timeout: timedelta
    cache_key: str | None = None


@dataclass(frozen=True)
class ModelAnswer:
    """An answer of the model.

    Attributes:
        finish: After `length` the answer is incomplete, and its calls must not be run.
        prompt_tokens: Tokens of the messages, counted by the server or estimated.
        answer_tokens: The same for the answer with its reasoning.
        cached_tokens: The part of `prompt_tokens` that the server read from its cache.
        reasoning_tokens: The part of `answer_tokens` that is not in `text`.
    """

    text: str
    finish: Finish = "stop"
    prompt_tokens: int = 0
    answer_tokens: int = 0
    cached_tokens: int = 0
    reasoning_tokens: int = 0
    tool_calls: tuple[ToolCall, ...] = ()


def check_calls(messages: Sequence[ChatMessage]) -> None:
    """Check that each call of a tool is answered once, before any other message. Servers reject other histories.

    Raises:
        InvalidInputError: A call has no answer, or an answer no call.
    """
    open_calls: list[str] = []
    for message in [*messages, None]:
        if message is not None and message.role == "tool":
            if message.tool_call_id not in open_calls:
                raise InvalidInputError(f"The conversation answers the call {message.tool_call_id!r}, which is not open.")
            open_calls.remove(message.tool_call_id)
        elif open_calls:
            raise InvalidInputError(
                f"The call {open_calls[0]!r} has no answer.", hint="Answer each call by a message of the role `tool`."
            )
        else:
            open_calls = [call.call_id for call in message.tool_calls] if message is not None else []


def with_own_ids(answer: ModelAnswer, messages: Sequence[ChatMessage]) -> ModelAnswer:
    """Give each call of an answer an id that is unique in the conversation; some models give none, or repeat one."""
    taken = {call.call_id for message in messages for call in message.tool_calls} | {""}
    names, calls = (f"call-{number}" for number in count(1)), list[ToolCall]()
    for call in answer.tool_calls:
        call_id = call.call_id if call.call_id not in taken else next(name for name in names if name not in taken)
        taken.add(call_id)
        calls.append(replace(call, call_id=call_id))
    return replace(answer, tool_calls=tuple(calls))


class ChatModel(Protocol):
    """Answers conversations."""

    async def context_tokens(self) -> int:
        """Return the known maximum tokens of a request with its answer. Rejected requests can lower it."""

    async def answer(
        self,
        messages: Sequence[ChatMessage],
        shape: type[BaseModel] | None,
        limits: AnswerLimits,
        tools: Sequence[Tool] = (),
        *,
        may_call: bool = True,
        hear: Hear | None = None,
    ) -> ModelAnswer:
        """Send one request to the model.

        Args:
            messages: The conversation, in which each call of a tool is answered.
            shape: Class of the requested JSON; the answer can differ from it. None requests text.
            limits: Limits of the answer.
            tools: Tools that the model may call; it can name others.
            may_call: False forbids calls, but leaves the tools in the prompt, for the server's prompt cache.
            hear: Called with a partial text answer, if the model supports it.

        Raises:
            InvalidInputError: A call of a tool has no answer; nothing was sent.
            PromptTooLongError: The messages and the answer do not fit into the context.
            UnavailableError: The model cannot be reached, is overloaded or too slow; a retry can help.
            ModelError: The server rejects the request; a retry does not help.
        """
