"""Metrics of the NATS connections of this process. nats-py's counters are read before each scrape."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from nats.aio.client import Client
from prometheus_client import Counter, Gauge

from ioa.telemetry import readiness
from ioa.telemetry.process_metrics import before_scrapes

nats_errors = Counter("ioa_nats_errors_total", "Errors of the server or the client library, by class", ["kind"])
nats_connected = Gauge("ioa_nats_connected", "1 while every NATS connection of the process is connected")
nats_reconnects = Counter("ioa_nats_reconnects_total", "Reconnects to NATS")
nats_messages = Counter("ioa_nats_messages_total", "Messages over NATS, acknowledgements included", ["direction"])
nats_bytes = Counter("ioa_nats_bytes_total", "Payload bytes over NATS", ["direction"])

_clients = set[Client]()


@contextmanager
def watch_traffic(client: Client) -> Iterator[None]:
    """Count the traffic of a connection while the block runs. The process is not ready while it is disconnected."""
    counted = dict.fromkeys(client.stats, 0)

    def count() -> None:
        nonlocal counted
        nats_connected.set(min(one.is_connected for one in _clients))
        for direction in ("in", "out"):
            for metric, name in ((nats_messages, f"{direction}_msgs"), (nats_bytes, f"{direction}_bytes")):
                metric.labels(direction).inc(client.stats[name] - counted[name])
        counted = dict(client.stats)

    _clients.add(client)
    try:
        with readiness.needs("NATS", lambda: client.is_connected), before_scrapes(count):
            yield
    finally:
        count()
        _clients.remove(client)
