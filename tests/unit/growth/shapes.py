"""Data of the shape that a model has, grown at one place at a time: what anybody may send who knows the protocol.

What is grown is a text, a list or a table of what belongs there, or of what does not. All else is the least that is valid.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any

import msgpack

from ioa.protocol.model import Model
from tests.unit.growth.textures import FEW_UNITS, HEADS, UNITS, text_of

Grown = Callable[[int, int], Any]
"""Makes data of a size; another one for another salt."""

_TEXTS = ("a1", "a" * 64, "text", "2026-01-01T00:00:00Z", "0" * 16)
_DEEPEST = 6


@cache
def _schema_of(kind: type[Model]) -> Mapping[str, Any]:
    return kind.model_json_schema()


class Shape:
    """The shape of a model.

    Args:
        kind: The model.
        told: Values for fields that are read in another form than the shape tells, by name. They are grown elsewhere.
    """

    def __init__(self, kind: type[Model], told: Mapping[str, Any] | None = None) -> None:
        self._schema = _schema_of(kind)
        self._parts: Mapping[str, Any] = self._schema.get("$defs", {})
        self._told = told or {}

    def least(self) -> Any:
        """The least that is valid, as far as the shape tells."""
        return self._least(self._schema)

    def grown(self) -> Iterator[tuple[str, Grown]]:
        """Yield the places that can be grown, and what each makes."""
        yield from self._grown(self._schema, set(), 0)

    def _resolved(self, schema: Mapping[str, Any]) -> Mapping[str, Any]:
        while "$ref" in schema:
            schema = self._parts[schema["$ref"].rpartition("/")[2]]
        return schema

    def _options(self, schema: Mapping[str, Any]) -> list[Mapping[str, Any]]:
        options = schema.get("anyOf", schema.get("oneOf", ()))
        return [self._resolved(one) for one in options if one.get("type") != "null"]

    def _least(self, schema: Mapping[str, Any]) -> Any:
        schema = self._resolved(schema)
        if "const" in schema or "enum" in schema:
            return schema.get("const", schema.get("enum", (None,))[0])
        if options := self._options(schema):
            return self._least(self._chosen(options))
        match schema.get("type"):
            case "string":
                return b"a" if _is_of_bytes(schema) else _text(schema)
            case "integer" | "number":
                return schema.get("minimum", schema.get("exclusiveMinimum", 0) + 1)
            case "boolean":
                return False
            case "array":
                return [self._least(schema.get("items", {}))] * schema.get("minItems", 0)
            case "object":
                kept = {name: one for name, one in schema.get("properties", {}).items() if self._stands(name, one, schema)}
                return _bytes_last({name: self._least_of_field(name, one) for name, one in kept.items()})
            case _:
                return "a"

    def _chosen(self, options: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
        """Which of several shapes something has."""
        return options[0]

    def _stands(self, name: str, field: Mapping[str, Any], schema: Mapping[str, Any]) -> bool:
        """Whether a field stands in what is made."""
        return name in schema.get("required", ()) or "const" in field or name in self._told

    def _least_of_field(self, name: str, schema: Mapping[str, Any]) -> Any:
        return self._told[name] if name in self._told else self._least(schema)

    def _grown(self, schema: Mapping[str, Any], seen: set[str], depth: int) -> Iterator[tuple[str, Grown]]:
        if (name := schema.get("$ref")) is not None:
            if name in seen:
                return  # it was grown elsewhere in the same data
            seen.add(name)
        schema = self._resolved(schema)
        if depth > _DEEPEST or "const" in schema or "enum" in schema:
            return
        for option in schema.get("anyOf", schema.get("oneOf", ())):
            yield from self._grown(option, seen, depth)
        match schema.get("type"):
            case "string" if _is_of_bytes(schema):
                yield from ((head, _repeated(HEADS[head])) for head in HEADS)
            case "string":
                yield from ((unit, _texts(UNITS[unit])) for unit in FEW_UNITS)
                yield "a list of texts", lambda size, salt: ["a"] * (size // 2)
            case "array":
                yield from self._grown_list(schema.get("items", {}), seen, depth)
            case "object":
                yield from self._grown_table(schema, seen, depth)

    def _grown_list(self, items: Mapping[str, Any], seen: set[str], depth: int) -> Iterator[tuple[str, Grown]]:
        one = self._least(items)
        yield "many", lambda size, salt: [one] * (size // _bytes_of(one))
        yield (
            "many that differ",
            lambda size, salt: [_differing(one, f"{salt:x}{at}") for at in range(size // (8 + _bytes_of(one)))],
        )
        yield "many lists", lambda size, salt: [[]] * size
        yield "a table", lambda size, salt: {f"{at:05}": 0 for at in range(size // 7)}
        for label, grown in self._grown(items, seen, depth + 1):
            yield f"[{label}]", _in_list(grown)

    def _grown_table(self, schema: Mapping[str, Any], seen: set[str], depth: int) -> Iterator[tuple[str, Grown]]:
        base = self._least(schema)
        for name, inner in schema.get("properties", {}).items():
            if name in self._told:
                continue
            for label, grown in self._grown(inner, seen, depth + 1):
                yield f"{name}: {label}", _with(base, name, grown)
        if not depth:
            yield "unknown fields", lambda size, salt: {**base, **{f"{at:05}": 0 for at in range(size // 7)}}
        if isinstance(values := schema.get("additionalProperties"), Mapping):
            one = self._least(values)
            yield "many names", lambda size, salt: {f"a{salt:x}{at}": one for at in range(size // (8 + _bytes_of(one)))}
            for label, grown in self._grown(values, seen, depth + 1):
                yield f"{{{label}}}", _with({}, "a", grown)


def _in_list(grown: Grown) -> Grown:
    return lambda size, salt: [grown(size, salt)]


def _with(base: Mapping[str, Any], name: str, grown: Grown) -> Grown:
    return lambda size, salt: _bytes_last({**base, name: grown(size, salt)})


def _texts(unit: str) -> Grown:
    return lambda size, salt: text_of(unit, size // len(unit.encode()) * len(unit), salt)


def _repeated(head: bytes) -> Grown:
    return lambda size, salt: (head * (size // len(head) + 1))[:size]


def _is_of_bytes(schema: Mapping[str, Any]) -> bool:
    return schema.get("format") == "binary"


def _bytes_last(value: dict[str, Any]) -> dict[str, Any]:
    """What carries bytes has them stand last."""
    return dict(sorted(value.items(), key=lambda item: isinstance(item[1], bytes)))


def _text(schema: Mapping[str, Any]) -> str:
    pattern, least = schema.get("pattern", ""), schema.get("minLength", 0)
    if schema.get("format") == "date-time":
        return "2026-01-01T00:00:00Z"
    if schema.get("format") == "duration":
        return "PT60S"
    return next(one for one in (*_TEXTS, "") if len(one) >= least and _matches(pattern, one))


@cache
def _matches(pattern: str, text: str) -> bool:
    return re.search(pattern, text) is not None


def _differing(value: Any, name: str) -> Any:
    """The same, but for its texts that may be anything, and its ids."""
    if value == "a1":
        return f"a{name}"
    return {key: _differing(one, name) for key, one in value.items()} if isinstance(value, dict) else value


def _bytes_of(value: Any) -> int:
    return len(msgpack.packb(value))
