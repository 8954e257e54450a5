"""Schemas of strangers: which of them are soon told, and that those meet no more than was counted."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from ioa.json_schema import is_soon_told, unfit

_NAMES = ("a", "b")
_values = st.recursive(
    st.none() | st.integers(0, 3) | st.sampled_from(_NAMES),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(_NAMES), inner, max_size=2),
    max_leaves=8,
)
_told = st.fixed_dictionaries(
    {}, optional={"type": st.sampled_from(("string", "array", "object")), "const": _values, "enum": st.lists(_values, max_size=2)}
)


def _with_parts(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    named = st.dictionaries(st.sampled_from(_NAMES), inner, max_size=2)
    alone = ("additionalProperties", "contains", "else", "if", "items", "not", "propertyNames", "then")
    several = ("allOf", "anyOf", "oneOf", "prefixItems")
    parts: dict[str, st.SearchStrategy[Any]] = {"properties": named, "dependentSchemas": named}
    parts |= dict.fromkeys(alone, inner) | dict.fromkeys(several, st.lists(inner, min_size=1, max_size=2))
    return st.sampled_from(sorted(parts)).flatmap(lambda word: st.fixed_dictionaries({word: parts[word]}))


_schemas = st.recursive(
    _told, lambda inner: _with_parts(inner) | st.builds(dict.__or__, _with_parts(inner), _with_parts(inner)), max_leaves=8
)


def _parts(whole: object) -> int:
    if isinstance(whole, Mapping):
        return 1 + sum(1 + _parts(one) for one in whole.values())
    return 1 + sum(map(_parts, whole)) if isinstance(whole, list) else 1


@given(_schemas, _values)
def test_each_part_of_what_is_soon_told_meets_each_part_of_a_value_once(schema: Mapping[str, Any], value: object) -> None:
    """However it is put together: what is counted before is not exceeded, whatever the library does."""
    met = 0

    def counted(meeting: Callable[..., Any]) -> Callable[..., Any]:
        def meet(*arguments: Any, **named: Any) -> Any:
            nonlocal met
            met += 1
            return meeting(*arguments, **named)

        return meet

    with pytest.MonkeyPatch.context() as patch:
        for name in ("descend", "iter_errors"):
            patch.setattr(Draft202012Validator, name, counted(getattr(Draft202012Validator, name)))
        unfit(schema, value, 1_000)
    assert is_soon_told(schema, value) and met <= _parts(schema) * _parts(value)


@pytest.mark.parametrize(
    "part",
    [
        {"$ref": "#"},
        {"$dynamicRef": "#"},
        {"pattern": "^(a+)+$"},
        {"patternProperties": {"^(a+)+$": True}},
        {"$schema": "http://json-schema.org/draft-03/schema#", "extends": {}},
        {"uniqueItems": True},
        {"unevaluatedItems": False},
        {"unevaluatedProperties": False},
        {"enum": [["a"] * 10_001]},
        {"const": "a" * 10_000_000},
    ],
)
def test_what_may_look_at_something_again_is_not_soon_told(part: Mapping[str, Any]) -> None:
    """Wherever it stands; neither is what is large."""
    assert not is_soon_told({"type": "object", "properties": {"a": {"anyOf": [part]}}}, {})


def test_what_servers_offer_most_is_soon_told() -> None:
    """Also arguments that are called as expressions are, and long ones."""
    words = {"pattern": {"type": "string"}, "content": {"anyOf": [{"type": "string"}, {"type": "null"}], "default": None}}
    wanted = {"$schema": "http://json-schema.org/draft-07/schema#", "type": "object", "properties": words, "required": ["pattern"]}
    assert is_soon_told(wanted, {"pattern": "a", "content": "b" * 100_000})
    assert not is_soon_told(wanted, {"content": [1] * 1_000})
