"""Putting names of agents and groups in the place of others, by what fields are declared to hold.

An agent may be called as a role or an option is, and words may be a name: not every text that is somebody's name names him.
"""

from __future__ import annotations

import operator
from collections.abc import Collection, Mapping
from functools import cache
from typing import Any, TypeVar, get_args

from pydantic import BaseModel

from ioa.protocol.ids import AgentId, CommId
from ioa.protocol.messages import Decision
from ioa.protocol.policy import FieldValue

M = TypeVar("M", bound=BaseModel)


def renamed(model: M, names: Mapping[str, str]) -> M:
    """Return a value with other names, wherever it names an agent or a group; what is chosen may be a member.

    Args:
        model: What names them.
        names: The new names, by the old ones.
    """
    holders, changed = _holders(type(model)), dict[str, object]()
    for field in type(model).model_fields:
        before = getattr(model, field)
        after = _renamed(before, names if field in holders else _NONE, names)
        if after is not before:
            changed[field] = after
    return model.model_copy(update=changed) if changed else model


_NONE: Mapping[str, str] = {}


def _renamed(value: object, own: Mapping[str, str], names: Mapping[str, str]) -> object:
    match value:
        case BaseModel():
            return renamed(value, names)
        case str():
            return own.get(value, value)
        case tuple():
            items = tuple([_renamed(one, own, names) for one in value])
            return value if all(map(operator.is_, items, value)) else items
        case Mapping():
            return {key: _renamed(one, own, names) for key, one in value.items()} if value else value
        case _:
            return value


@cache
def _holders(kind: type[BaseModel]) -> Collection[str]:
    """Return the fields of a model that hold names; what is decided may be one of the members."""
    named = {name for name, field in kind.model_fields.items() if _names_somebody(field.annotation)}
    return frozenset(named | ({"choice"} if issubclass(kind, Decision) else set()))


def _names_somebody(annotation: Any) -> bool:
    return annotation in (AgentId, CommId, FieldValue) or any(map(_names_somebody, get_args(annotation)))
