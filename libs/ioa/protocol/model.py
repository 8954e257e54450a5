"""Base classes of all encoded data: immutable and validated."""

from __future__ import annotations

import operator
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import cache
from typing import Annotated, Any, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, GetCoreSchemaHandler
from pydantic_core import CoreSchema

_WITH_ELEMENTS = ("tuple", "list", "set", "frozenset", "dict")
_set_fields, _set_names, _set_extra, _set_private = [
    BaseModel.__dict__[name].__set__
    for name in ("__dict__", "__pydantic_fields_set__", "__pydantic_extra__", "__pydantic_private__")
]
_NO_SCHEMAS = ("default", "metadata", "serialization")


def _bound(schema: Any) -> None:
    if isinstance(schema, dict):
        if schema.get("type") in _WITH_ELEMENTS:
            schema["fail_fast"] = True
        if schema.get("type") == "str":
            schema["strict"] = True
        for name, inner in schema.items():
            if name not in _NO_SCHEMAS:
                _bound(inner)
    elif isinstance(schema, list | tuple):
        for inner in schema:
            _bound(inner)


class FailFast(BaseModel):
    """A model whose lists and tables are validated up to the first wrong element, and whose texts must be texts.

    A million wrong elements fit into one message, and the validation of each takes seconds. Bytes would bypass the checks of texts.
    """

    @classmethod
    def __get_pydantic_core_schema__(cls, source: type[BaseModel], handler: GetCoreSchemaHandler) -> CoreSchema:
        """Change the schema of each list, table and text of the class."""
        schema = handler(source)
        _bound(schema)
        return schema


OMITTED_IF_EMPTY = Field(exclude_if=operator.not_)
"""Marks a field that is not encoded while it is empty."""


class Model(FailFast):
    """An immutable value. Unknown fields are ignored, so that a rolling upgrade works."""

    model_config = ConfigDict(frozen=True, extra="ignore", ser_json_timedelta="float")

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        """Copy it with other fields, without validation. The copy of pydantic takes four times as long, and steps copy often."""
        if deep:
            return super().model_copy(update=update, deep=True)
        changed, names = update or {}, self.__pydantic_fields_set__
        copied = object.__new__(self.__class__)
        _set_fields(copied, {**self.__dict__, **changed})
        _set_names(copied, names if names.issuperset(changed) else names.union(changed))
        _set_extra(copied, None)
        _set_private(copied, None)
        return copied

    @classmethod
    def of_valid(cls, **fields: Any) -> Self:
        """Create it from fields that were validated before; fields that are left out have their defaults."""
        defaults, names = _list_defaults(cls)
        created = object.__new__(cls)
        _set_fields(created, {**defaults, **fields})
        _set_names(created, names)
        _set_extra(created, None)
        _set_private(created, None)
        return created


@cache
def _list_defaults(kind: type[Model]) -> tuple[dict[str, Any], set[str]]:
    """Return the defaults of a model's fields in their order, with placeholders of required fields, and all their names."""
    fields = kind.model_fields
    return {name: field.get_default(call_default_factory=True) for name, field in fields.items()}, set(fields)


class Instruction(Model):
    """A request with an effect. Unknown fields are rejected, so that no message of another kind is accepted."""

    model_config = ConfigDict(extra="forbid")


class Carrier(Instruction):
    """A message with raw bytes, which are its last field."""

    data: bytes


def _to_utc(value: datetime) -> datetime:
    if value.tzinfo is UTC:
        return value
    if value.tzinfo is None:
        raise ValueError("a time must carry its zone")
    try:
        return value.astimezone(UTC)
    except OverflowError:
        raise ValueError("the time is outside the calendar") from None


Digest = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
"""A SHA-256 digest in hexadecimal digits."""

Time = Annotated[datetime, AfterValidator(_to_utc)]


def as_seconds(written: object) -> object:
    """Read a plain number as seconds; other values are left to pydantic (ISO 8601)."""
    try:
        return float(written) if isinstance(written, str) else written
    except ValueError:
        return written
