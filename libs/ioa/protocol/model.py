"""The base of everything that travels: immutable, validated, tolerant of fields a newer peer adds."""

from __future__ import annotations

import operator
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Annotated, Any, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, GetCoreSchemaHandler
from pydantic_core import CoreSchema

_WITH_ELEMENTS = ("tuple", "list", "set", "frozenset", "dict")
_set = object.__setattr__
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
    """What is read no further behind the first wrong element of each list and table in it.

    A million wrong elements fit into one message, and to look at each takes seconds, although one is told. And bytes are no text:
    as such they would come past what is refused of texts.
    """

    @classmethod
    def __get_pydantic_core_schema__(cls, source: type[BaseModel], handler: GetCoreSchemaHandler) -> CoreSchema:
        """Have every list, table and text of the class read so, whatever stands around it."""
        schema = handler(source)
        _bound(schema)
        return schema


OMITTED_IF_EMPTY = Field(exclude_if=operator.not_)
"""Marks a field that is not encoded while it is empty."""


class Model(FailFast):
    """An immutable value. Unknown fields are ignored, so that a rolling upgrade does not refuse its newer peers."""

    model_config = ConfigDict(frozen=True, extra="ignore", ser_json_timedelta="float")

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        """Copy it with other fields, which are not validated. pydantic's own copy takes twice as long: every message is copied."""
        if deep:
            return super().model_copy(update=update, deep=True)
        copied = self.__class__.__new__(self.__class__)
        changed = update or {}
        _set(copied, "__dict__", {**self.__dict__, **changed})
        _set(copied, "__pydantic_fields_set__", self.__pydantic_fields_set__.union(changed))
        _set(copied, "__pydantic_extra__", None)
        _set(copied, "__pydantic_private__", None)
        return copied


class Instruction(Model):
    """A request that destroys or decides. Unknown fields are refused, so that no message of another kind is taken for one."""

    model_config = ConfigDict(extra="forbid")


class Carrier(Instruction):
    """What carries bytes, which travel as they are and stand last."""

    data: bytes


def _to_utc(value: datetime) -> datetime:
    if value.tzinfo is UTC:
        return value
    if value.tzinfo is None:
        raise ValueError("a time must carry its zone")
    try:
        return value.astimezone(UTC)
    except OverflowError:
        raise ValueError("the time lies outside the calendar") from None


Time = Annotated[datetime, AfterValidator(_to_utc)]


def as_seconds(written: object) -> object:
    """Read a plain number as seconds, for a duration that people write; anything else is left to pydantic (ISO 8601)."""
    try:
        return float(written) if isinstance(written, str) else written
    except ValueError:
        return written
