"""Whom a service slows down, as it tells it: in its statistics (`$SRV.STATS`), and to those who ask by name."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from ioa.ports.inspection import SlowedCaller

_SERVICE, _SLOWED, _MOST = "service", "slowed", 10


def slowed_statistics(*found: Sequence[SlowedCaller]) -> dict[str, list[list[str | int]]]:
    """Tell of some of those who are slowed down, of each kind those most of whose requests were refused."""
    most = [one for kind in found for one in sorted(kind, key=lambda one: -one.refused)[:_MOST]]
    return {_SLOWED: [[one.caller, one.family, one.refused] for one in most]}


def slowed_answer(service: str, *found: Sequence[SlowedCaller]) -> bytes:
    """Write what a replica answers who asks whom it slows down; `slowed_by` reads it."""
    return json.dumps({_SERVICE: service} | slowed_statistics(*found)).encode()


def slowed_of(stats: bytes) -> list[SlowedCaller]:
    """Read off what a service tells of itself (`$SRV.STATS`) whose requests it refused lately for their number."""
    try:
        told = [endpoint["data"] for endpoint in json.loads(stats)["endpoints"] if _SLOWED in (endpoint.get("data") or {})]
        return [one for found in told for one in _slowed(found)]
    except (ValueError, KeyError, TypeError, AttributeError):
        return []


def slowed_by(answer: bytes) -> tuple[str, list[SlowedCaller]]:
    """Read off what a replica answers who asks whom it slows down (`subjects.slowed_of`): of which service it is, and whom."""
    try:
        told = json.loads(answer)
        return str(told[_SERVICE]), _slowed(told)
    except (ValueError, KeyError, TypeError, AttributeError):
        return "", []


def _slowed(told: Mapping[str, Any]) -> list[SlowedCaller]:
    return [SlowedCaller(str(caller), str(family), int(number)) for caller, family, number in told[_SLOWED]]
