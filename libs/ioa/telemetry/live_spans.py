"""Spans of an agent's process while it works: calls of models, searches, and authors' functions.

All other spans of a trace are derived from the log (`ioa.client.spans`). The parents of a span follow from names, so no process
sends a span to another. Other libraries add their spans to the current span. Without a tracer, nothing is recorded.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ioa.protocol.operation.trace import CHAT, OPERATION, Attribute, trace_id_of

if TYPE_CHECKING:
    from opentelemetry.trace import Span as OtelSpan
    from opentelemetry.trace import SpanKind, Tracer

ERROR = "error.type"
_SAMPLED_FLAG = 1


@dataclass(frozen=True)
class LiveSpan:
    """A span that has not ended. None: it is not recorded."""

    span: OtelSpan | None = None

    def note(self, attributes: Mapping[str, Attribute]) -> None:
        """Set attributes."""
        if self.span is not None:
            self.span.set_attributes(attributes)


_tracer: Tracer | None = None


@contextmanager
def traced_by(tracer: Tracer) -> Iterator[None]:
    """Record the spans of the block by `tracer`, unless the process has a tracer already."""
    global _tracer  # noqa: PLW0603 - one for each process, as for metrics
    if _tracer is not None:
        yield
        return
    _tracer = tracer
    try:
        yield
    finally:
        _tracer = None


def is_traced() -> bool:
    """Return whether spans are recorded."""
    return _tracer is not None


def span_kind(attributes: Mapping[str, Attribute]) -> SpanKind:
    """Return the kind of a span: only a model call is a call of another server."""
    from opentelemetry.trace import SpanKind

    return SpanKind.CLIENT if attributes.get(OPERATION) == CHAT else SpanKind.INTERNAL


@contextmanager
def under(traceparent: str, span_id: str) -> Iterator[None]:
    """Make the spans of the block, also spans of other libraries, children of a span that another process exports.

    Args:
        traceparent: The goal's.
        span_id: The id of the group, task or goal (`ioa.protocol.operation.trace`).
    """
    trace_id = trace_id_of(traceparent)
    if _tracer is None or not trace_id:
        yield
        return
    from opentelemetry.trace import NonRecordingSpan, SpanContext, TraceFlags, use_span

    flags = TraceFlags(int(traceparent.split("-")[3], 16) & _SAMPLED_FLAG)
    above = SpanContext(int(trace_id, 16), int(span_id, 16), is_remote=True, trace_flags=flags)
    with use_span(NonRecordingSpan(above), record_exception=False, set_status_on_exception=False):
        yield


@contextmanager
def span(name: str, attributes: Mapping[str, Attribute]) -> Iterator[LiveSpan]:
    """Record the block as a child of the span that it is `under`.

    An error is recorded by its class only, because its message may contain content.
    """
    if _tracer is None:
        yield LiveSpan()
        return
    from opentelemetry.trace import StatusCode

    whole = _tracer.start_as_current_span(
        name, kind=span_kind(attributes), attributes=attributes, record_exception=False, set_status_on_exception=False
    )
    with whole as recorded:
        try:
            yield LiveSpan(recorded)
        except BaseException as error:
            failure = type(error).__name__
            recorded.set_attribute(ERROR, failure)
            recorded.set_status(StatusCode.ERROR, failure)
            raise
