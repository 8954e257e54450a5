"""Holding JSON to a schema that a stranger wrote, which may take for ever: it refers to itself, and holds expressions.

It takes no size for that: 2 kB of thirty parts, each of which refers twice to the next one, take a processor hours. Which schemas
do so is not found out here, but which cannot: those with neither, as most are.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Any

_AGAIN = ("$dynamicRef", "$ref", "$schema", "patternProperties", "unevaluatedItems", "unevaluatedProperties", "uniqueItems")
"""What looks at the same again, or at pairs of things, or by expressions; a part of another version may know other such words."""
_MOST_MEETINGS = 10_000
_CHARS = 1_000
"""For how many of its characters a text counts once more: what does not fit is shown."""


def unfit(schema: Mapping[str, Any], value: object, most: int) -> list[str]:
    """Say what of a value does not fit, and no more than so many things. What is referred to elsewhere is fetched from nowhere.

    Raises:
        ImportError: The library is not installed.
        Exception: It is no schema, or refers to something elsewhere.
    """
    from jsonschema import Draft202012Validator
    from referencing import Registry

    found = Draft202012Validator(dict(schema), registry=Registry()).iter_errors(value)
    return [f"{'.'.join(map(str, one.absolute_path)) or 'arguments'}: {one.message}" for one in islice(found, most)]


def is_soon_told(schema: Mapping[str, Any], value: object) -> bool:
    """Whether `unfit` takes no longer than a loop may be held up: some 10 µs for each meeting of a part with a part, at the worst.

    Where nothing in a schema refers to anything, each part of it is met on one way alone, and so meets each part of a value once.
    """
    parts = [*islice(_parts_of({name: one for name, one in schema.items() if name != "$schema"}), _MOST_MEETINGS + 1)]
    return not any(map(_looks_again, parts)) and _count(parts) * _count(_parts_of(value)) <= _MOST_MEETINGS


def _parts_of(whole: object) -> Iterator[object]:
    """Yield all that JSON is made of, names included."""
    left = [whole]
    while left:
        part = left.pop()
        yield part
        if isinstance(part, Mapping):
            left += [*part, *part.values()]
        elif isinstance(part, list):
            left += part


def _looks_again(part: object) -> bool:
    """Whether a part of a schema may look at something more than once; one that only describes something so called may seem to."""
    return isinstance(part, Mapping) and (any(word in part for word in _AGAIN) or isinstance(part.get("pattern"), str))


def _count(parts: Iterable[object]) -> int:
    return sum(1 + len(part) // _CHARS if isinstance(part, str) else 1 for part in parts)
