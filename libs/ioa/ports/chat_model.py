"""A language model as brains and tasks see it: messages go in, the text of one answer or the tools it wants to use come out.

The port promises nothing about the text, nor about the arguments of a tool. Whether it is JSON, legal or sensible is for the caller
to check, so that the worst model and the best one go through the same door. It promises that nothing is lost in silence: an answer
says how it ended.
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
"""How an answer ended: by itself, at the limit of tokens, with calls of tools, by a filter of content, or in a way nobody knows."""

HEARD_CHARS = 4_000
"""How much of an answer's text has to be told while it is written, if there is so much: its end."""

Hear = Callable[[str], None]
"""Is told the text of an answer as far as it has come, or its last `HEARD_CHARS`, since that costs the same however long it gets.
What it is told may begin anew, and is no answer."""

current_user: ContextVar[str] = ContextVar("current_user", default="")
"""The user for whose goal the current task works. Shared models serve users round-robin by it; a task inherits its creator's."""

Effort = Literal["minimal", "low", "medium", "high"]
"""How much a model that reasons is to reason."""


class PromptTooLongError(ModelError):
    """The request does not fit into the model's context: make a shorter prompt.

    Attributes:
        context: For how large a context, where that holds for this request alone: its texts may have more tokens than is estimated,
            which says nothing of others'. None: for what `ChatModel.context_tokens` says, which knows better now.
    """

    def __init__(self, message: str, *, context: int | None = None) -> None:
        super().__init__(message)
        self.context = context


@dataclass(frozen=True)
class Tool:
    """A tool that the model may ask for.

    Attributes:
        parameters: The JSON schema of an object.
    """

    name: str
    description: str
    parameters: Mapping[str, Any]


@dataclass(frozen=True)
class ToolCall:
    """What the model wants of a tool.

    Attributes:
        call_id: Unique among the calls of a conversation.
        name: As the model wrote it; there may be no such tool.
        arguments: JSON text as the model wrote it; nobody has checked it.
    """

    call_id: str
    name: str
    arguments: str


@dataclass(frozen=True)
class ChatMessage:
    """One message of the conversation with the model.

    Attributes:
        tool_calls: What the model asked for, in a message of the `assistant`.
        tool_call_id: Which call a message of the role `tool` answers. Each call is answered before anything else is said.
    """

    role: Literal["system", "user", "assistant", "tool"]
    content: str
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str = ""


@dataclass(frozen=True)
class AnswerLimits:
    """What one answer may cost.

    Attributes:
        max_tokens: Where the server cuts the answer; what a model reasons before it answers counts.
        timeout: For the whole call with all its retries, once its turn has come where others ask, too.
        effort: How much to reason; None leaves it to the model's settings.
        cache_key: The same for requests that begin alike, so that a provider sends them where their beginning was read before.
    """

    max_tokens: int
    timeout: timedelta
    temperature: float = 0.2
    effort: Effort | None = None
    cache_key: str | None = None


@dataclass(frozen=True)
class ModelAnswer:
    """What the model said.

    Attributes:
        text: The answer as it came; empty if the model said nothing.
        finish: How it ended. After `length` the rest of it is missing, however well it reads, and its calls are not to be run.
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
    tool_calls: tuple[ToolCall, ...] = ()


def check_calls(messages: Sequence[ChatMessage]) -> None:
    """Check that each call of a tool is answered once, before anything else is said. Servers refuse any other history.

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
    """Give each call of an answer an id that no other call of the conversation has; some models give none, or the same again."""
    taken = {call.call_id for message in messages for call in message.tool_calls} | {""}
    names, calls = (f"call-{number}" for number in count(1)), list[ToolCall]()
    for call in answer.tool_calls:
        call_id = call.call_id if call.call_id not in taken else next(name for name in names if name not in taken)
        taken.add(call_id)
        calls.append(replace(call, call_id=call_id))
    return replace(answer, tool_calls=tuple(calls))


class ChatModel(Protocol):
    """Answer a conversation, if asked so in the shape of a class, or with calls of tools."""

    async def context_tokens(self) -> int:
        """How many tokens a request and its answer may have together, as far as is known; what is learned makes it smaller."""

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
        """Ask the model once.

        Args:
            messages: The conversation, in which each call of a tool is answered.
            shape: Which JSON is wanted; the model is asked for it but not trusted to keep to it. None: text is wanted.
            limits: What the answer may cost.
            tools: What the model may ask for; it may name others.
            may_call: False: the tools stay in sight, so that what servers keep of the prompt holds, but none is to be asked for.
            hear: Wants to hear an answer in words while it is written, if the model can tell; one of a shape it is told nothing of.

        Raises:
            InvalidInputError: A call of a tool has no answer; nothing was sent.
            PromptTooLongError: The messages and the answer do not fit into the context; a shorter prompt may.
            UnavailableError: The model cannot be reached, is overloaded or too slow; a later call can help.
            ModelError: The server refuses the request; the same call will be refused again.
        """
