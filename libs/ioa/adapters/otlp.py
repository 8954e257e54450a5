"""Handing traces to whatever understands OpenTelemetry's protocol over HTTP (OTLP), by OpenTelemetry's own exporter.

Where to, with which headers and how patiently, its own environment variables say (`OTEL_EXPORTER_OTLP_…`), as for any program.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta

from ioa.errors import MissingExtraError, UnavailableError
from ioa.protocol.trace import Span

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


_ENDPOINTS = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")


def is_wanted(environment: Mapping[str, str]) -> bool:
    """Whether the environment says where traces are to go."""
    return any(environment.get(name) for name in _ENDPOINTS)


def export_spans(trace_id: str, spans: Sequence[Span], endpoint: str | None = None) -> None:
    """Hand spans of one trace over. It blocks, and tries again for a while if nobody answers.

    Args:
        trace_id: 32 hexadecimal digits.
        spans: What of the trace is handed over; what was handed over before may be among it.
        endpoint: Where to, such as http://127.0.0.1:4318/v1/traces. None: as the environment says.

    Raises:
        MissingExtraError: OpenTelemetry is not installed.
        UnavailableError: Nobody has taken them.
    """
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import ReadableSpan
        from opentelemetry.sdk.trace.export import SpanExportResult
        from opentelemetry.trace import SpanContext, Status, StatusCode, TraceFlags
    except ModuleNotFoundError as error:
        raise MissingExtraError.of("What exports traces", "otel") from error

    def context(span_id: str) -> SpanContext:
        return SpanContext(int(trace_id, 16), int(span_id, 16), is_remote=False, trace_flags=TraceFlags(TraceFlags.SAMPLED))

    resource = Resource.create({"service.name": "ioa"})
    readable = [
        ReadableSpan(
            name=span.name,
            context=context(span.span_id),
            parent=context(span.parent_id) if span.parent_id else None,
            resource=resource,
            attributes=span.attributes,
            status=Status(StatusCode.ERROR, span.failure) if span.failure else Status(StatusCode.OK),
            start_time=_nanoseconds(span.start),
            end_time=_nanoseconds(span.end),
        )
        for span in spans
    ]
    exporter = OTLPSpanExporter(endpoint=endpoint)
    try:
        if exporter.export(readable) is not SpanExportResult.SUCCESS:
            raise UnavailableError(
                "Nobody has taken the trace.", hint="Is OTEL_EXPORTER_OTLP_ENDPOINT right, and a collector there?"
            )
    finally:
        exporter.shutdown()  # type: ignore[no-untyped-call]


def _nanoseconds(at: datetime) -> int:
    return (at - _EPOCH) // _MICROSECOND * 1_000
