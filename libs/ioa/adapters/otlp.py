"""Export of traces over HTTP by OpenTelemetry's protocol (OTLP), with OpenTelemetry's exporter.

The trace of a goal is sent as a whole; spans of running agents (`ioa.telemetry.live_spans`) are sent in batches. The environment
variables of OpenTelemetry (`OTEL_EXPORTER_OTLP_…`) set the endpoint, the headers and the timeout.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import structlog

from ioa.errors import MissingExtraError, UnavailableError
from ioa.protocol.operation.trace import Span
from ioa.telemetry.live_spans import ERROR, span_kind, traced_by

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_ENDPOINTS = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")

_log = structlog.get_logger(__name__)


def is_wanted(environment: Mapping[str, str]) -> bool:
    """Return whether the environment names an endpoint for traces."""
    return any(environment.get(name) for name in _ENDPOINTS)


def export_spans(trace_id: str, spans: Sequence[Span], endpoint: str | None = None, service: str = "ioa") -> None:
    """Send the spans of a trace. Block, and retry while the endpoint does not answer.

    Args:
        trace_id: 32 hexadecimal digits.
        spans: Spans of the trace; a span can be sent more than once.
        endpoint: URL, such as http://127.0.0.1:4318/v1/traces. Default: the environment names it.
        service: Name of this process, unless `OTEL_SERVICE_NAME` names it.

    Raises:
        MissingExtraError: OpenTelemetry is not installed.
        UnavailableError: The endpoint has not accepted the spans.
    """
    exporter, resource = _open_exporter(endpoint, service)
    from opentelemetry.sdk.trace import ReadableSpan
    from opentelemetry.sdk.trace.export import SpanExportResult
    from opentelemetry.trace import SpanContext, Status, StatusCode, TraceFlags

    def context(span_id: str) -> SpanContext:
        return SpanContext(int(trace_id, 16), int(span_id, 16), is_remote=False, trace_flags=TraceFlags(TraceFlags.SAMPLED))

    readable = [
        ReadableSpan(
            name=span.name,
            context=context(span.span_id),
            parent=context(span.parent_id) if span.parent_id else None,
            resource=resource,
            attributes={**span.attributes, ERROR: span.failure} if span.failure else span.attributes,
            kind=span_kind(span.attributes),
            status=Status(StatusCode.ERROR, span.failure) if span.failure else Status(StatusCode.OK),
            start_time=_nanoseconds(span.start),
            end_time=_nanoseconds(span.end),
        )
        for span in spans
    ]
    try:
        if exporter.export(readable) is not SpanExportResult.SUCCESS:
            raise UnavailableError(
                "No collector has accepted the trace.", hint="Check OTEL_EXPORTER_OTLP_ENDPOINT, and that a collector runs there."
            )
    finally:
        exporter.shutdown()


def _open_exporter(endpoint: str | None, service: str) -> tuple[Any, Any]:
    """Return an exporter, and the description of this service.

    Raises:
        MissingExtraError: OpenTelemetry is not installed.
    """
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.resources import Resource
    except ModuleNotFoundError as error:
        raise MissingExtraError.of("The export of traces", "otel") from error
    return OTLPSpanExporter(endpoint=endpoint), Resource.create({"service.name": os.environ.get("OTEL_SERVICE_NAME") or service})


def _nanoseconds(at: datetime) -> int:
    return (at - _EPOCH) // _MICROSECOND * 1_000


@asynccontextmanager
async def open_live_spans(environment: Mapping[str, str], service: str, endpoint: str | None = None) -> AsyncIterator[None]:
    """Send the spans of the block while it runs, if the environment names an endpoint. Spans that are not accepted are dropped.

    Args:
        environment: The environment variables.
        service: Name of this process, unless `OTEL_SERVICE_NAME` names it.
        endpoint: URL, such as http://127.0.0.1:4318/v1/traces. Default: the environment names it.
    """
    if not is_wanted(environment):
        yield
        return
    try:
        exporter, resource = _open_exporter(endpoint, service)
    except MissingExtraError as error:  # the endpoint may be there for an author's own spans
        _log.warning("live_spans_off", error=str(error))
        yield
        return
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    provider = TracerProvider(resource=resource)
    provider.add_span_processor(BatchSpanProcessor(exporter))
    try:
        with traced_by(provider.get_tracer("ioa")):
            yield
    finally:
        await asyncio.to_thread(provider.shutdown)  # sends the remaining spans
