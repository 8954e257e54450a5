"""Data that is valid but for one place, at which stands an extreme: what anybody may send who knows the protocol."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from copy import copy
from math import inf, nan
from typing import Any

import msgpack

from ioa.protocol.model import Model
from tests.unit.growth.shapes import Shape

_WHOLE = (0, 1, -1, 2**53, 10**15, 10**15 + 1, 2**63 - 1, 2**63, 2**64 - 1, -(2**63))
_BEYOND = (10**30, -(10**300))
"""What JSON can spell, and msgpack cannot."""
_BROKEN = (-0.0, 0.5, 5e-324, 5e-7, 1e300, -1e300, inf, -inf, nan)
_TIMES = (
    *("0001-01-01T00:00:00Z", "0001-01-01T00:00:00+23:59", "9999-12-31T23:59:59.999999Z", "9999-12-31T23:59:59.999999-23:59"),
    *("2026-01-01T00:00:00", "2026-01-01T24:00:00Z", "2026-13-01T00:00:00Z"),
)
_DURATIONS = ("PT0S", "PT0.000001S", "-PT1S", "P365D", "P999999999D", "P99999999999999D")
_TEXTS = (
    *("", " ", "a", "a" * 65, "a.b", "*", "0", "-1", "٣", "²", "nan", "1e400", "9" * 400),
    *("\ufdfa", "\U0001f600" * 80),
)
_OTHERS: tuple[Any, ...] = (None, True, False, [], {}, [[]], [None], {"": 0}, b"", b"a", b"\xff")
_SPELT = (
    b"1e400",
    b"-1e400",
    b"9" * 399,
    b"9" * 5_000,
    b"NaN",
    b"-Infinity",
    b'"\\ud800"',
    b"[" * 99 + b"]" * 99,
    b'{"a":1,"a":2}',
)
"""What JSON can spell, and Python does not write."""
_MARK = "here it stands"
EXTREMES = (*_WHOLE, *_BEYOND, *_BROKEN, *_TIMES, *_DURATIONS, *_TEXTS, *_OTHERS)
"""What may stand anywhere, whatever belongs there."""

_MOST_REPEATED = 256
_BOUNDS = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum")


class Whole(Shape):
    """Data of the shape of a model in which all fields stand.

    Args:
        kind: The model.
        told: Values for some fields, by name.
        pick: Which of several shapes something has, where it may have one of several.
    """

    def __init__(self, kind: type[Model], told: Mapping[str, Any] | None = None, pick: int = 0) -> None:
        super().__init__(kind, told)
        self._pick = pick

    def bounds(self) -> tuple[float, ...]:
        """The numbers that the shape itself names as bounds, and those beside them."""
        named = {value for part in (self._schema, *self._parts.values()) for value in _named_in(part)}
        return tuple(sorted({near for value in named for near in (value - 1, value, value + 1)}))

    def _chosen(self, options: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
        return options[self._pick % len(options)]

    def _stands(self, name: str, field: Mapping[str, Any], schema: Mapping[str, Any]) -> bool:
        return True


def _named_in(schema: Any) -> Iterator[float]:
    if isinstance(schema, dict):
        yield from (schema[one] for one in _BOUNDS if isinstance(schema.get(one), int | float))
        for inner in schema.values():
            yield from _named_in(inner)
    elif isinstance(schema, list):
        for inner in schema:
            yield from _named_in(inner)


def changed(
    base: Mapping[str, Any], extremes: Sequence[Any] = EXTREMES, parts: Collection[str] | None = None
) -> Iterator[tuple[str, Any]]:
    """Yield data with an extreme at each of its places in turn, with what stands there twice or many times, and without it.

    Args:
        base: The data, of which nothing is changed.
        extremes: What stands at each place.
        parts: The fields that are changed, with what is in them; None: all.
    """
    for way in _ways(base):
        if parts is not None and way[0] not in parts:
            continue
        before = _at(base, way)
        lists = (before * 2, before * _MOST_REPEATED) if isinstance(before, list) and before else ()
        for value in (*extremes, *lists):
            yield f"{_named(way)} = {value!r:.60}", _with(base, way, value)
        if way and isinstance(way[-1], str):
            yield (
                f"no {_named(way)}",
                _with(base, way[:-1], {one: kept for one, kept in _at(base, way[:-1]).items() if one != way[-1]}),
            )


def spelt(base: Mapping[str, Any]) -> Iterator[tuple[str, bytes]]:
    """Yield data as JSON likewise, with what only JSON can spell as well."""
    yield "as it is", json.dumps(base).encode()
    for place, value in changed(base):
        try:
            yield place, json.dumps(value).encode()
        except TypeError:
            continue  # bytes, which JSON has not
    mark = json.dumps(_MARK).encode()
    for place, value in changed(base, (_MARK,)):
        written = json.dumps(value).encode()
        yield from ((f"{place}: {one[:20]!r}", written.replace(mark, one)) for one in _SPELT)


def packed(value: Any) -> bytes | None:
    """Write data for a message; None of what cannot be written so."""
    try:
        data: bytes = msgpack.packb(value)
    except (OverflowError, UnicodeEncodeError):
        return None
    return data


def _ways(value: Any, way: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    if way:
        yield way
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, one in inner:
        yield from _ways(one, (*way, key))


def _named(way: Sequence[str | int]) -> str:
    return ".".join(map(str, way))


def _at(value: Any, way: Sequence[str | int]) -> Any:
    for key in way:
        value = value[key]
    return value


def _with(base: Any, way: Sequence[str | int], value: Any) -> Any:
    """Change a copy, which shares with the first one what stands beside the place."""
    if not way:
        return value
    made = copy(base)
    made[way[0]] = _with(base[way[0]], way[1:], value)
    return made
