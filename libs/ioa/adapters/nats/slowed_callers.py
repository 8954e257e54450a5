"""Whom a service slows down, as it tells it: in its statistics (`$SRV.STATS`), and to those who ask by name.

Nobody is told of less because of others of another family: networks that come in vain cost whoever has many of them nothing, and
would hide who floods.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain, islice, zip_longest
from typing import Any

from ioa.json_text import parse_json
from ioa.ports.inspection import SlowedCaller

_SERVICE, _SLOWED = "service", "slowed"
_MOST = 200
"""How many a service tells of at once, 60 kB at most: who floods with many keys, each kept out for up to an hour, hides nobody."""
_NOT_TOLD = (ValueError, KeyError, TypeError, AttributeError, OverflowError)
"""What comes of reading an answer that is none."""


def most_first(callers: Iterable[SlowedCaller]) -> list[SlowedCaller]:
    """Sort callers by the number of their rejected requests, largest first."""
    return sorted(callers, key=lambda one: -one.refused)


def slowed_statistics(*found: Sequence[SlowedCaller]) -> dict[str, list[list[str | int]]]:
    """Tell of those who are slowed down; if they are too many, of each family in turn, of those first who matter most."""
    families = defaultdict[str, list[SlowedCaller]](list)
    for one in most_first(chain.from_iterable(found)):
        families[one.family].append(one)
    in_turn = (one for turn in zip_longest(*families.values()) for one in turn if one is not None)
    return {_SLOWED: [[one.caller, one.family, one.refused] for one in islice(in_turn, _MOST)]}


def slowed_answer(service: str, *found: Sequence[SlowedCaller]) -> bytes:
    """Write what a replica answers who asks whom it slows down; `slowed_by` reads it."""
    return json.dumps({_SERVICE: service} | slowed_statistics(*found)).encode()


def slowed_in_statistics(stats: bytes) -> tuple[str, list[SlowedCaller]]:
    """Read off what a service tells of itself (`$SRV.STATS`) what it is called, and whose requests it refused lately."""
    try:
        read = parse_json(stats)
        told = [endpoint["data"] for endpoint in read["endpoints"] if _SLOWED in (endpoint.get("data") or {})]
        return str(read["name"]), [one for found in told for one in _slowed(found)]
    except _NOT_TOLD:
        return "", []


def slowed_by(answer: bytes) -> tuple[str, list[SlowedCaller]]:
    """Read off what a replica answers who asks whom it slows down (`subjects.slowed_of`): of which service it is, and whom."""
    try:
        told = parse_json(answer)
        return str(told[_SERVICE]), _slowed(told)
    except _NOT_TOLD:
        return "", []


def _slowed(told: Mapping[str, Any]) -> list[SlowedCaller]:
    return [SlowedCaller(str(caller), str(family), int(number)) for caller, family, number in told[_SLOWED]]
