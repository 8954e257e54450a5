"""What a process depends on to serve: connections, registrations. Each part says itself whether it is there.

A probe of readiness asks here. That a part is away is no reason to restart the process: it waits, and is ready again by itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

_parts: dict[object, tuple[str, Callable[[], bool]]] = {}


@contextmanager
def needs(part: str, is_there: Callable[[], bool]) -> Iterator[None]:
    """Make the process ready only while `is_there` says so, until the block ends. It is asked on the event loop."""
    key = object()
    _parts[key] = (part, is_there)
    try:
        yield
    finally:
        del _parts[key]


def missing() -> list[str]:
    """Name the parts that are away."""
    return sorted({part for part, is_there in _parts.values() if not is_there()})
