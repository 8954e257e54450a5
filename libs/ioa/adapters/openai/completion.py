"""How the answer to a chat-completions request is read."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Annotated, Any

from pydantic import BaseModel, Field, ValidationError

from ioa.adapters.openai.dialect import ChatRequest, Dialect, ToolFormat
from ioa.errors import ModelError
from ioa.json_text import find_object
from ioa.ports.chat_model import Finish, ModelAnswer, ToolCall, with_own_ids
from ioa.protocol.model import FailFast
from ioa.protocol.usage import MAX_COUNT

MOST_CALLS = 1_000
"""How many tools an answer may call at once: what makes more of them is no model."""


class _Function(BaseModel):
    name: str
    arguments: Any = None


class _Call(BaseModel):
    id: str | None = None
    function: _Function


class _Said(BaseModel):
    content: str | None = None
    refusal: str | None = None
    tool_calls: Annotated[list[_Call], Field(max_length=MOST_CALLS)] | None = None


class _Choice(BaseModel):
    message: _Said
    finish_reason: str | None = None


class _PromptDetails(BaseModel):
    cached_tokens: int | None = None


class _AnswerDetails(BaseModel):
    reasoning_tokens: int | None = None


class _Usage(BaseModel):
    prompt_tokens: int | None = 0
    completion_tokens: int | None = 0
    prompt_cache_hit_tokens: int | None = None
    prompt_tokens_details: _PromptDetails | None = None
    completion_tokens_details: _AnswerDetails | None = None

    @property
    def cached_tokens(self) -> int:
        told = self.prompt_tokens_details.cached_tokens if self.prompt_tokens_details else None
        return _count(self.prompt_cache_hit_tokens if told is None else told)

    @property
    def reasoning_tokens(self) -> int:
        told = self.completion_tokens_details.reasoning_tokens if self.completion_tokens_details else None
        return _count(told)


def _count(told: int | None) -> int:
    """Return how many tokens a server tells of, of numbers that no usage can be the nearest one."""
    return min(max(0, told or 0), MAX_COUNT)


class _Completion(FailFast):
    choices: list[_Choice]
    usage: _Usage | None = None


_FINISHES: dict[str | None, Finish] = {
    "stop": "stop",
    "length": "length",
    "tool_calls": "tools",
    "function_call": "tools",
    "content_filter": "filter",
}


def read_completion(text: str, where: str, quoted: Callable[[str], str]) -> ModelAnswer:
    """Read the server's answer. A refusal by the model is its text; `quoted` makes of an answer what an error may show.

    Raises:
        ModelError: It is no chat completion.
    """
    completion = _completion(text)
    if completion is None:  # raised here, where no other error that quotes the answer is its context
        raise ModelError(
            f"{where} answers with something that is no chat completion: {quoted(text)[:100]!r}.", hint="Check IOA_LLM_BASE_URL."
        )
    choice = completion.choices[0]
    usage = completion.usage or _Usage()
    return ModelAnswer(
        text=choice.message.content or choice.message.refusal or "",
        finish=_FINISHES.get(choice.finish_reason, "other"),
        prompt_tokens=_count(usage.prompt_tokens),
        answer_tokens=_count(usage.completion_tokens),
        cached_tokens=usage.cached_tokens,
        reasoning_tokens=usage.reasoning_tokens,
        tool_calls=tuple(
            ToolCall(call.id or "", call.function.name, _as_text(call.function.arguments))
            for call in choice.message.tool_calls or ()
        ),
    )


def _completion(text: str) -> _Completion | None:
    try:
        completion = _Completion.model_validate_json(text)
    except ValidationError:
        return None
    return completion if completion.choices else None


def read_calls(answer: ModelAnswer, request: ChatRequest, dialect: Dialect) -> ModelAnswer:
    """Give each call an id of its own, and find those that are written in the text where the server knows no tools."""
    if request.tools and dialect.tools is not ToolFormat.NATIVE and answer.finish != "length":
        answer = _unwrapped(answer)
    finish = "tools" if answer.tool_calls and answer.finish == "stop" else answer.finish
    return with_own_ids(replace(answer, finish=finish), request.messages)


def _unwrapped(answer: ModelAnswer) -> ModelAnswer:
    """Read `{tool, arguments}` or `{answer}` out of a text; a text without either is the answer itself."""
    found = find_object(answer.text) or {}
    if isinstance(name := found.get("tool"), str):
        return replace(answer, text="", tool_calls=(ToolCall("", name, _as_text(found.get("arguments"))),))
    if "answer" in found:
        return replace(answer, text=_as_text(found["answer"]))
    return answer


def _as_text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps({} if value is None else value, ensure_ascii=False)
