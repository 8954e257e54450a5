"""Spans of what an agent's process does itself, while it happens: calls of models, searches, and authors' functions.

Everything else of a trace is made of the log (`ioa.client.spans`). What these are parts of follows from names, so that no process
is told of a span by another. Without somebody who takes spans each of these calls costs one comparison.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from typing import Protocol

from ioa.protocol.trace import Attribute, trace_id_of


class LiveSpan(Protocol):
    """Something that goes on."""

    def note(self, attributes: Mapping[str, Attribute], failure: str = "") -> None:
        """Note what is known of it by now, and why it failed."""


class Tracing(Protocol):
    """Takes spans."""

    def under(self, traceparent: str, span_id: str) -> AbstractContextManager[None]:
        """Have what is done within the block be parts of a span of a trace, also by libraries that trace themselves."""

    def span(self, name: str, attributes: Mapping[str, Attribute]) -> AbstractContextManager[LiveSpan]:
        """Measure the block. An error that leaves it is noted by its class alone, since messages hold what was said."""


class _Untold:
    def note(self, attributes: Mapping[str, Attribute], failure: str = "") -> None:
        """Tell nobody."""


_tracing: Tracing | None = None
_UNTOLD = _Untold()


@contextmanager
def traced_by(tracing: Tracing) -> Iterator[None]:
    """Have a block's spans taken by somebody, unless somebody takes them already."""
    global _tracing  # noqa: PLW0603 - as with metrics, there is one for a process
    if _tracing is not None:
        yield
        return
    _tracing = tracing
    try:
        yield
    finally:
        _tracing = None


def is_traced() -> bool:
    """Whether anybody takes spans."""
    return _tracing is not None


@contextmanager
def under(traceparent: str, span_id: str) -> Iterator[None]:
    """Have what is done within the block be parts of a span of a trace.

    Args:
        traceparent: Of the goal.
        span_id: Of the group, task or goal, as `ioa.protocol.trace` names it.
    """
    if _tracing is None or not trace_id_of(traceparent):
        yield
        return
    with _tracing.under(traceparent, span_id):
        yield


@contextmanager
def span(name: str, attributes: Mapping[str, Attribute]) -> Iterator[LiveSpan]:
    """Measure the block, as a part of what it is `under`."""
    if _tracing is None:
        yield _UNTOLD
        return
    with _tracing.span(name, attributes) as live:
        yield live
