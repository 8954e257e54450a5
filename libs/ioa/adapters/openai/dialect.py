"""What a chat-completions request and its answer look like, and what a server's refusals teach of how to ask it.

A server that knows no tools is asked for the call of one as it is asked for an answer: by a schema, or in words. The conversation
is then told in words too, and what comes back is read as the call it is.

Strict structured output takes a subset of JSON schema: every property required, no additional ones, `anyOf` but no `oneOf`, and,
with some vendors, no limits of lengths. What a shape loses in translation its reader checks again.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from ioa.adapters.openai.settings import ModelSettings
from ioa.errors import ModelError
from ioa.json_text import find_object
from ioa.ports.chat_model import AnswerLimits, ChatMessage, Finish, ModelAnswer, Tool, ToolCall, with_own_ids

_LEFT_OUT = ("title", "default", "discriminator", "description", "minLength", "maxLength", "minItems", "maxItems")
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
class Request:
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

    def without(self, refusal: str, request: Request) -> Dialect | None:
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

    def streams(self, request: Request) -> bool:
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

    def read_calls(self, answer: ModelAnswer, request: Request) -> ModelAnswer:
        """Give each call an id of its own, and find those that are written in the text where the server knows no tools."""
        if request.tools and self.tools is not ToolFormat.NATIVE and answer.finish != "length":
            answer = _unwrapped(answer)
        finish = "tools" if answer.tool_calls and answer.finish == "stop" else answer.finish
        return with_own_ids(replace(answer, finish=finish), request.messages)


def is_too_long(refusal: str) -> bool:
    """Whether a server refuses a request since it, or what it leaves of the context for the answer, is too long."""
    return _TOO_LONG.search(refusal) is not None


def context_told(refusal: str) -> int | None:
    """How large the context is by a refusal for length; None if it does not say."""
    told = [int((one or other).replace(",", "")) for one, other in _CONTEXT.findall(refusal)]
    return min(told) if told else None


def chat_body(settings: ModelSettings, request: Request, dialect: Dialect) -> dict[str, Any]:
    """Build the request. Without a schema of its own the shape is described at the end of the system message.

    There it stands before all that changes, so that servers which keep the beginnings of prompts keep it too.
    """
    limits, tools, shape = request.limits, request.tools, request.shape
    native = dialect.tools is ToolFormat.NATIVE
    said = list(map(_as_sent, request.messages)) if native else _in_words(request.messages)
    wished = {
        "temperature": limits.temperature,
        "seed": settings.seed,
        "reasoning_effort": limits.effort or settings.reasoning_effort,
        "prompt_cache_key": limits.cache_key,
    }
    body: dict[str, Any] = {
        "model": settings.model,
        "messages": said,
        dialect.tokens_field: dialect.answer_tokens(limits.max_tokens),
        **{name: value for name, value in wished.items() if value is not None and name not in dialect.given_up},
    }
    if dialect.streams(request):
        body |= {_STREAM: True, "stream_options": {"include_usage": True}}
    if tools and native:
        body["tools"] = [
            {"type": "function", "function": {"name": one.name, "description": one.description, "parameters": one.parameters}}
            for one in tools
        ]
        body["tool_choice"] = "auto" if request.may_call else "none"
    if tools and not native:
        schema = _call_or_answer(request)
        told = f"{_tools_in_words(request)}\n\nAnswer with one JSON object of this schema, nothing else:\n{json.dumps(schema)}"
        if dialect.tools is ToolFormat.SCHEMA:
            body["response_format"] = {"type": "json_schema", "json_schema": {"name": "call_or_answer", "schema": schema}}
        return {**body, "messages": _with_rule(said, told), **settings.extra}
    if shape is None:
        return {**body, **settings.extra}
    schema = strict_schema(shape)
    if dialect.format is AnswerFormat.SCHEMA:
        body["response_format"] = {"type": "json_schema", "json_schema": {"name": "answer", "strict": True, "schema": schema}}
        return {**body, **settings.extra}
    if dialect.format is AnswerFormat.JSON:
        body["response_format"] = {"type": "json_object"}
    told = f"Answer with one JSON object of this schema, nothing else:\n{json.dumps(schema)}"
    return {**body, "messages": _with_rule(said, told), **settings.extra}


def _with_rule(said: list[dict[str, Any]], told: str) -> list[dict[str, Any]]:
    if said and said[0]["role"] == "system":
        return [{**said[0], "content": f"{said[0]['content']}\n\n{told}"}, *said[1:]]
    return [{"role": "system", "content": told}, *said]


def _as_sent(message: ChatMessage) -> dict[str, Any]:
    if message.role == "tool":
        return {"role": "tool", "tool_call_id": message.tool_call_id, "content": message.content}
    if not message.tool_calls:
        return {"role": message.role, "content": message.content}
    calls = [
        {"id": call.call_id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
        for call in message.tool_calls
    ]
    return {"role": message.role, "content": message.content or None, "tool_calls": calls}


def _in_words(messages: Sequence[ChatMessage]) -> list[dict[str, Any]]:
    """Tell a conversation to a server that knows no tools: calls as the model was to write them, results as the user's words."""
    said: list[dict[str, Any]] = []
    names = {call.call_id: call.name for message in messages for call in message.tool_calls}
    for message in messages:
        if message.role != "tool":
            calls = [f'{{"tool": {json.dumps(call.name)}, "arguments": {call.arguments or "{}"}}}' for call in message.tool_calls]
            said.append({"role": message.role, "content": "\n".join(filter(None, (message.content, *calls)))})
            continue
        told = f"Result of {names[message.tool_call_id]}:\n{message.content}"
        if said[-1]["role"] == "user":  # the result of another call of the same answer
            told = f"{said.pop()['content']}\n\n{told}"
        said.append({"role": "user", "content": told})
    return said


def _tools_in_words(request: Request) -> str:
    told = [f"- {one.name}: {one.description} Arguments: {json.dumps(one.parameters)}" for one in request.tools]
    rule = "Either ask for one tool, whose result you get, or answer." if request.may_call else "No tool is left: answer."
    return "\n".join(["Tools:", *told, rule])


def _call_or_answer(request: Request) -> dict[str, Any]:
    """Return the schema of `{tool, arguments}` for each tool, or `{answer}`."""
    ways, definitions = list[dict[str, Any]](), dict[str, Any]()
    for one in request.tools if request.may_call else ():
        definitions |= one.parameters.get("$defs", {})
        arguments = {key: value for key, value in one.parameters.items() if key != "$defs"}
        ways.append(_object(tool={"type": "string", "enum": [one.name]}, arguments=arguments))
    answer: dict[str, Any] = {"type": "string"} if request.shape is None else strict_schema(request.shape)
    definitions |= answer.pop("$defs", {})
    return {"anyOf": [*ways, _object(answer=answer)], **({"$defs": definitions} if definitions else {})}


def _object(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


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


def strict_schema(shape: type[BaseModel]) -> dict[str, Any]:
    """Translate a class into the subset of JSON schema that strict structured output takes."""
    translated: dict[str, Any] = _translated(shape.model_json_schema())
    return translated


def _translated(node: Any) -> Any:
    if isinstance(node, list):
        return [_translated(item) for item in node]
    if not isinstance(node, dict):
        return node
    result: dict[str, Any] = {}
    for key, value in node.items():
        if key in ("properties", "$defs"):
            result[key] = {name: _translated(inner) for name, inner in value.items()}
        elif key not in _LEFT_OUT:
            result["anyOf" if key == "oneOf" else key] = _translated(value)
    if "const" in result:
        result = {**{key: value for key, value in result.items() if key != "const"}, "enum": [result["const"]]}
    if result.get("type") == "object" and "properties" in result:
        result |= {"required": list(result["properties"]), "additionalProperties": False}
    return result


class _Function(BaseModel):
    name: str
    arguments: Any = None


class _Call(BaseModel):
    id: str | None = None
    function: _Function


class _Said(BaseModel):
    content: str | None = None
    refusal: str | None = None
    tool_calls: list[_Call] | None = None


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
        return max(0, self.prompt_cache_hit_tokens or 0 if told is None else told)

    @property
    def reasoning_tokens(self) -> int:
        told = self.completion_tokens_details.reasoning_tokens if self.completion_tokens_details else None
        return max(0, told or 0)


class _Completion(BaseModel):
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
        prompt_tokens=max(0, usage.prompt_tokens or 0),
        answer_tokens=max(0, usage.completion_tokens or 0),
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
