"""Errors that the server reports end no connection."""

from __future__ import annotations

from structlog.testing import capture_logs

from ioa.adapters.nats.wire.connection import NatsSettings, _LastingClient


async def test_too_many_subscriptions_end_no_connection() -> None:
    """The error is reported, and the connection stays open."""
    client = _LastingClient(NatsSettings("", "tried"))
    client._error_cb = client.report
    with capture_logs() as lines:
        await client._process_err("'maximum subscriptions exceeded'")
    assert ([line["event"] for line in lines], client.is_closed) == (["nats_error"], False)
