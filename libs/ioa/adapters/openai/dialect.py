"""What a server takes, as far as its refusals have taught: how to ask it, and how much fits into its context."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from enum import Enum
from typing import TypeVar

from pydantic import BaseModel

from ioa.ports.chat_model import AnswerLimits, ChatMessage, Tool

_GIVEN_UP = ("temperature", "seed", "reasoning_effort", "prompt_cache_key")
"""What a server may refuse without harm to the answer."""
_STREAM = "stream"
_NAMES_STREAM = re.compile(rf"\b{_STREAM}")
_ANSWER_LIMITS = ("max_tokens", "max_completion_tokens")
_LEAST_ANSWER_TOKENS = 64

_TOO_LONG = re.compile(
    r"n_ctx|max_model_len|context[ _](?:length|size|window|limit)|prompt (?:is )?too long|too many (?:input )?tokens"
    r"|input token count|max_new_tokens",
    re.IGNORECASE,
)
"""How servers say that a request is too long: llama.cpp, vLLM and SGLang, OpenAI, Anthropic, Gemini, TGI, Mistral."""
_CONTEXT = re.compile(
    r"(?:n_ctx|max_model_len|maximum context length|context (?:size|window|length|limit)|tokens allowed|must be <=)"
    r"[^0-9a-z]{0,8}(?:(?:is|of)[^0-9a-z]{1,3})?([0-9][0-9,]{2,12})|> ?([0-9][0-9,]{2,12}) maximum",
    re.IGNORECASE,
)
_NUMBER = re.compile(r"(?<![0-9.,])[0-9]{2,9}(?![0-9.])")


@dataclass(frozen=True)
class ChatRequest:
    """What a model is asked; see `ChatModel.answer`."""

    messages: tuple[ChatMessage, ...]
    shape: type[BaseModel] | None
    limits: AnswerLimits
    tools: tuple[Tool, ...] = ()
    may_call: bool = True
    is_heard: bool = False


class AnswerFormat(Enum):
    """How the shape of an answer is asked for, the strictest first."""

    SCHEMA = "json_schema"
    JSON = "json_object"
    PLAIN = "plain"


class ToolFormat(Enum):
    """How the call of a tool is asked for: by the server's own fields, as an object of a schema, or as such an object in words."""

    NATIVE = "native"
    SCHEMA = "schema"
    TEXT = "text"


_Way = TypeVar("_Way", bound=Enum)


def _weaker(way: _Way) -> _Way | None:
    """Return the next weaker way to ask; None after the last."""
    ways = list(type(way))
    return ways[at] if (at := ways.index(way) + 1) < len(ways) else None


def _weakest(one: _Way, other: _Way) -> _Way:
    ways = list(type(one))
    return max(one, other, key=ways.index)


@dataclass(frozen=True)
class Dialect:
    """What a server takes. `most_answer_tokens` is what it lets an answer have; None if it never said."""

    format: AnswerFormat = AnswerFormat.SCHEMA
    tools: ToolFormat = ToolFormat.NATIVE
    tokens_field: str = "max_tokens"
    given_up: frozenset[str] = frozenset()
    most_answer_tokens: int | None = None

    def without(self, refusal: str, request: ChatRequest) -> Dialect | None:
        """Give up what the refusal names, or else one degree of strictness; None if nothing is left to give up.

        Args:
            refusal: What the server said.
            request: What it refused.
        """
        asked_tokens = self.answer_tokens(request.limits.max_tokens)
        if self.tokens_field == "max_tokens" and "max_completion_tokens" in refusal:
            return replace(self, tokens_field="max_completion_tokens")
        named = next((field for field in _GIVEN_UP if field in refusal and field not in self.given_up), None)
        if named is not None:
            return replace(self, given_up=self.given_up | {named})
        if self.streams(request) and (_NAMES_STREAM.search(refusal) or "tool" not in refusal):
            return self.without_streams()
        if any(field in refusal for field in _ANSWER_LIMITS) and asked_tokens > _LEAST_ANSWER_TOKENS:
            told = [int(number) for number in _NUMBER.findall(refusal.replace(",", "")) if int(number) < asked_tokens]
            return replace(self, most_answer_tokens=max(_LEAST_ANSWER_TOKENS, max(told, default=asked_tokens // 2)))
        if request.tools:
            weaker = _weaker(self.tools)
            return None if weaker is None else replace(self, tools=weaker)
        simpler = None if request.shape is None else _weaker(self.format)
        return None if simpler is None else replace(self, format=simpler)

    def streams(self, request: ChatRequest) -> bool:
        """Whether an answer comes piece by piece: one in words that somebody wants to hear. Half of a JSON object tells nothing."""
        in_words = request.shape is None and (not request.tools or self.tools is ToolFormat.NATIVE)
        return request.is_heard and in_words and _STREAM not in self.given_up

    def without_streams(self) -> Dialect:
        """Ask for whole answers from now on."""
        return replace(self, given_up=self.given_up | {_STREAM})

    def joined(self, other: Dialect) -> Dialect:
        """Return the weaker way in each respect: of two requests that are under way together none undoes what the other learned."""
        limits = [one.most_answer_tokens for one in (self, other) if one.most_answer_tokens is not None]
        return Dialect(
            format=_weakest(self.format, other.format),
            tools=_weakest(self.tools, other.tools),
            tokens_field="max_completion_tokens"
            if "max_completion_tokens" in (self.tokens_field, other.tokens_field)
            else "max_tokens",
            given_up=self.given_up | other.given_up,
            most_answer_tokens=min(limits, default=None),
        )

    def answer_tokens(self, wanted: int) -> int:
        """Return the limit that an answer is asked with."""
        return wanted if self.most_answer_tokens is None else min(wanted, self.most_answer_tokens)


def is_too_long(refusal: str) -> bool:
    """Whether a server refuses a request since it, or what it leaves of the context for the answer, is too long."""
    return _TOO_LONG.search(refusal) is not None


def context_told(refusal: str) -> int | None:
    """How large the context is by a refusal for length; None if it does not say."""
    told = [int((one or other).replace(",", "")) for one, other in _CONTEXT.findall(refusal)]
    return min(told) if told else None


_CONTEXT_FIELDS = ("max_model_len", "context_length", "context_window", "max_context_length")
_LEAST_CONTEXT = 256


def context_in_models(listed: object, model: str) -> int | None:
    """How large the context of a model is by `GET /models`; None if the server does not say."""
    entries = listed.get("data") if isinstance(listed, dict) else None
    known = [entry for entry in entries if isinstance(entry, dict)] if isinstance(entries, list) else []
    named = [entry for entry in known if entry.get("id") == model] or (known if len(known) == 1 else [])
    return next((size for entry in named for field in _CONTEXT_FIELDS if (size := _size(entry.get(field)))), None)


def context_in_props(props: object) -> int | None:
    """How large the context of one slot is by llama.cpp's `GET /props`."""
    generation = props.get("default_generation_settings") if isinstance(props, dict) else None
    return _size(generation.get("n_ctx")) if isinstance(generation, dict) else None


def _size(told: object) -> int | None:
    return told if isinstance(told, int) and told >= _LEAST_CONTEXT else None
