"""What a chat-completions request and its answer look like, and how a server's refusals make the request simpler.

Strict structured output takes a subset of JSON schema: every property required, no additional ones, `anyOf` but no `oneOf`, and,
with some vendors, no length limits. What a shape loses in translation its reader checks again.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any

from pydantic import BaseModel, ValidationError

from ioa.errors import ModelError
from ioa.ports.chat_model import AnswerLimits, ChatMessage, ModelAnswer

_LENGTHS = ("minLength", "maxLength", "minItems", "maxItems")
_UNKNOWN_TO_STRICT = ("title", "default", "discriminator")


class AnswerFormat(Enum):
    """How the shape of an answer is asked for, the strictest first."""

    SCHEMA = "json_schema"
    SCHEMA_WITHOUT_LENGTHS = "json_schema without lengths"
    JSON = "json_object"
    PLAIN = "plain"

    @property
    def simpler(self) -> AnswerFormat | None:
        """The next weaker way to ask; None after the last."""
        ways = list(AnswerFormat)
        return ways[at] if (at := ways.index(self) + 1) < len(ways) else None


@dataclass(frozen=True)
class Dialect:
    """What a server takes."""

    format: AnswerFormat = AnswerFormat.SCHEMA
    tokens_field: str = "max_tokens"
    with_temperature: bool = True

    def without(self, refusal: str) -> Dialect | None:
        """Give up what the refusal names, or else one degree of strictness; None if nothing is left to give up."""
        if self.tokens_field == "max_tokens" and "max_completion_tokens" in refusal:
            return replace(self, tokens_field="max_completion_tokens")
        if self.with_temperature and "temperature" in refusal:
            return replace(self, with_temperature=False)
        simpler = self.format.simpler
        return None if simpler is None else replace(self, format=simpler)


def chat_body(
    model: str, messages: Sequence[ChatMessage], shape: type[BaseModel], limits: AnswerLimits, dialect: Dialect
) -> dict[str, Any]:
    """Build the request. Below a schema the shape is described in the last message, so that the model still knows it."""
    said = [{"role": message.role, "content": message.content} for message in messages]
    body: dict[str, Any] = {"model": model, "messages": said, dialect.tokens_field: limits.max_tokens}
    if dialect.with_temperature:
        body["temperature"] = limits.temperature
    if dialect.format in (AnswerFormat.SCHEMA, AnswerFormat.SCHEMA_WITHOUT_LENGTHS):
        schema = strict_schema(shape, with_lengths=dialect.format is AnswerFormat.SCHEMA)
        body["response_format"] = {"type": "json_schema", "json_schema": {"name": "answer", "strict": True, "schema": schema}}
        return body
    if dialect.format is AnswerFormat.JSON:
        body["response_format"] = {"type": "json_object"}
    schema_text = json.dumps(strict_schema(shape, with_lengths=True))
    said[-1] = {
        **said[-1],
        "content": f"{said[-1]['content']}\n\nAnswer with one JSON object of this schema, nothing else:\n{schema_text}",
    }
    return body


def strict_schema(shape: type[BaseModel], *, with_lengths: bool) -> dict[str, Any]:
    """Translate a class into the subset of JSON schema that strict structured output takes."""
    dropped = _UNKNOWN_TO_STRICT if with_lengths else (*_UNKNOWN_TO_STRICT, *_LENGTHS)
    translated: dict[str, Any] = _translated(shape.model_json_schema(), frozenset(dropped))
    return translated


def _translated(node: Any, dropped: frozenset[str]) -> Any:
    if isinstance(node, list):
        return [_translated(item, dropped) for item in node]
    if not isinstance(node, dict):
        return node
    result: dict[str, Any] = {}
    for key, value in node.items():
        if key in ("properties", "$defs"):
            result[key] = {name: _translated(inner, dropped) for name, inner in value.items()}
        elif key not in dropped:
            result["anyOf" if key == "oneOf" else key] = _translated(value, dropped)
    if "const" in result:
        result = {**{key: value for key, value in result.items() if key != "const"}, "enum": [result["const"]]}
    if result.get("type") == "object" and "properties" in result:
        result |= {"required": list(result["properties"]), "additionalProperties": False}
    return result


class _Said(BaseModel):
    content: str | None = None
    refusal: str | None = None


class _Choice(BaseModel):
    message: _Said
    finish_reason: str | None = None


class _Usage(BaseModel):
    prompt_tokens: int | None = 0
    completion_tokens: int | None = 0


class _Completion(BaseModel):
    choices: list[_Choice]
    usage: _Usage | None = None


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
        complete=choice.finish_reason != "length",
        prompt_tokens=usage.prompt_tokens or 0,
        answer_tokens=usage.completion_tokens or 0,
    )


def _completion(text: str) -> _Completion | None:
    try:
        completion = _Completion.model_validate_json(text)
    except ValidationError:
        return None
    return completion if completion.choices else None
