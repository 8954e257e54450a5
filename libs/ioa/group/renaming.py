"""Putting names of agents and groups in the place of others, by what fields are declared to hold.

An agent may be called as a role or an option is, and words may be a name: not every text that is somebody's name names him. Where a
text may be anything, what was asked for tells whether it names a member.
"""

from __future__ import annotations

import operator
from collections.abc import Collection, Mapping
from functools import cache
from typing import Any, NamedTuple, TypeVar, get_args

from pydantic import BaseModel

from ioa.group.forms import form_of
from ioa.group.state import Asking, GroupState
from ioa.protocol.ids import AgentId, CommId
from ioa.protocol.messages import Decision, Discussion
from ioa.protocol.policy import Condition, Form, Node, Policy

M = TypeVar("M", bound=BaseModel)


class MembersAsked(NamedTuple):
    """Where a member is asked for, and not something else that may be called as one is.

    Attributes:
        fields: The fields of a form that hold one.
        is_chosen: Whether a decision chooses one.
    """

    fields: Collection[str] = ()
    is_chosen: bool = False


_NOWHERE = MembersAsked()


def members_asked(state: GroupState | None, policy: Policy | None) -> MembersAsked:
    """Say where a message names members, besides where its kind always does, as a group stands; nowhere if there is none."""
    if state is None:
        return _NOWHERE
    chooses = isinstance(state.stage, Asking) and state.stage.about == "speaker"
    return MembersAsked(_held(form_of(state, policy)), is_chosen=chooses)


def renamed(model: M, names: Mapping[str, str], asked: MembersAsked = _NOWHERE) -> M:
    """Return a value with other names, wherever it names an agent or a group.

    Args:
        model: What names them.
        names: The new names, by the old ones.
        asked: Where a message was asked for members. Of a policy its nodes tell.
    """
    holders, changed = _holders(type(model)), dict[str, object]()
    if isinstance(model, Node):
        asked = MembersAsked(_held(model.form))
    for field in type(model).model_fields:
        before = getattr(model, field)
        after = _renamed(before, names if field in holders else _NONE, names, asked)
        if after is not before:
            changed[field] = after
    changed |= _asked_for(model, names, asked)
    return model.model_copy(update=changed) if changed else model


_NONE: Mapping[str, str] = {}


def _asked_for(model: BaseModel, names: Mapping[str, str], asked: MembersAsked) -> Mapping[str, object]:
    """Return what of a value names members since it was asked for them."""
    match model:
        case Discussion(fields=fields) if fields and asked.fields:
            return {
                "fields": {key: _renamed(value, names if key in asked.fields else _NONE, names) for key, value in fields.items()}
            }
        case Decision(choice=choice, task_id=None) if asked.is_chosen:
            return {"choice": names.get(choice, choice)}
        case Condition(field=field, equals=str(value)) if field in asked.fields:
            return {"equals": names.get(value, value)}
        case _:
            return {}


def _renamed(value: object, own: Mapping[str, str], names: Mapping[str, str], asked: MembersAsked = _NOWHERE) -> object:
    match value:
        case BaseModel():
            return renamed(value, names, asked)
        case str():
            return own.get(value, value)
        case tuple():
            items = tuple([_renamed(one, own, names, asked) for one in value])
            return value if all(map(operator.is_, items, value)) else items
        case Mapping():
            return {key: _renamed(one, own, names, asked) for key, one in value.items()} if value else value
        case _:
            return value


def _held(form: Form) -> Collection[str]:
    """Return the fields of a form that hold members."""
    return frozenset([field.name for field in form if field.kind == "member"])


@cache
def _holders(kind: type[BaseModel]) -> Collection[str]:
    """Return the fields of a model that hold names, whatever stands in others."""
    return frozenset([name for name, field in kind.model_fields.items() if _names_somebody(field.annotation)])


def _names_somebody(annotation: Any) -> bool:
    return annotation in (AgentId, CommId) or any(map(_names_somebody, get_args(annotation)))
