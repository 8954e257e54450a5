"""What a pull costs nats-server is told from its request as the server reads it, which is written in Go."""

from __future__ import annotations

import pytest

from ioa.adapters.nats.connections import heartbeats_asked


@pytest.mark.parametrize(
    ("request_", "messages"),
    [
        (b'{"batch":1,"expires":30000000000,"idle_heartbeat":5000000000}', 6),
        (b'{"batch":1,"no_wait":true}', 1),
        (b'{"Expires":60000000000,"IDLE_HEARTBEAT":1000000}', 20_000),
        (b'{"idle_heartbeat":9,"expires":30,"idle_heartbeat":1}', 30),
        (b'{"expires":30,"idle_heartbeat":0}', 1),
        (b'{"expires":-30,"idle_heartbeat":1}', 1),
        (b'{"expires":true,"idle_heartbeat":1.5}', 1),
        (b"5", 1),
        (b"", 1),
        (b"[" * 100_000, 20_000),
    ],
)
def test_a_pull_is_worth_all_that_it_has_the_server_send(request_: bytes, messages: int) -> None:
    """Once in each of its heartbeats until it runs out, by whatever names Go reads; what means nothing is one request."""
    assert heartbeats_asked(request_) == messages
