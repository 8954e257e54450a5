"""Spans of an agent's process while it works: calls of models, searches, and authors' functions.

All other spans of a trace are derived from the log (`ioa.client.spans`). The parents of a span follow from names, so no process
sends a span to another. Without a `Tracing`, a span costs one comparison.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Protocol

from ioa.protocol.operation.trace import Attribute, trace_id_of


class LiveSpan(Protocol):
    """A span that has not ended."""

    def note(self, attributes: Mapping[str, Attribute], failure: str = "") -> None:
        """Set attributes, and the failure."""


class Tracing(Protocol):
    """Receives spans."""

    def under(self, traceparent: str, span_id: str) -> AbstractContextManager[None]:
        """Make the spans of the block, also spans of other libraries, children of a span."""

    def span(self, name: str, attributes: Mapping[str, Attribute]) -> AbstractContextManager[LiveSpan]:
        """Record the block. An error is recorded by its class only, because its message may contain content."""


class _Unrecorded:
    def note(self, attributes: Mapping[str, Attribute], failure: str = "") -> None:
        """Do nothing."""


_tracing: Tracing | None = None
_UNRECORDED = _Unrecorded()


@contextmanager
def traced_by(tracing: Tracing) -> Iterator[None]:
    """Send the spans of the block to `tracing`, unless the process has a `Tracing` already."""
    global _tracing  # noqa: PLW0603 - one for each process, as for metrics
    if _tracing is not None:
        yield
        return
    _tracing = tracing
    try:
        yield
    finally:
        _tracing = None


def is_traced() -> bool:
    """Return whether spans are recorded."""
    return _tracing is not None


def under(traceparent: str, span_id: str) -> AbstractContextManager[None]:
    """Make the spans of the block children of a span.

    Args:
        traceparent: The goal's.
        span_id: The id of the group, task or goal (`ioa.protocol.operation.trace`).
    """
    return nullcontext() if _tracing is None or not trace_id_of(traceparent) else _tracing.under(traceparent, span_id)


def span(name: str, attributes: Mapping[str, Attribute]) -> AbstractContextManager[LiveSpan]:
    """Record the block as a child of the span that it is `under`."""
    return nullcontext(_UNRECORDED) if _tracing is None else _tracing.span(name, attributes)
