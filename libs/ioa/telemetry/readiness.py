"""Readiness of a process: the state of its connections and registrations, for probes.

A missing part is no reason to restart the process: it waits, and becomes ready again by itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

_parts: dict[object, tuple[str, Callable[[], bool]]] = {}


@contextmanager
def needs(part: str, is_there: Callable[[], bool]) -> Iterator[None]:
    """Make the process ready only while `is_there` returns True, until the block ends. It is called on the event loop."""
    key = object()
    _parts[key] = (part, is_there)
    try:
        yield
    finally:
        del _parts[key]


def missing() -> list[str]:
    """Return the names of the missing parts."""
    return sorted({part for part, is_there in _parts.values() if not is_there()})
