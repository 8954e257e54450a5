"""Metrics of the NATS connections of this process, read from nats-py's counters at each scrape."""

from __future__ import annotations

from collections import Counter as CounterOfNames
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from nats.aio.client import Client
from prometheus_client import REGISTRY, Counter
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from ioa.telemetry import readiness

nats_errors = Counter("ioa_nats_errors_total", "Errors of the server or the client library, by class", ["kind"])


class ConnectionTraffic(Collector):
    """Sum the counters of open and closed connections."""

    def __init__(self) -> None:
        self._clients: set[Client] = set()
        self._closed = CounterOfNames[str]()

    @contextmanager
    def watch(self, client: Client) -> Iterator[None]:
        """Count a connection while the block runs. The process is not ready while it is disconnected."""
        self._clients.add(client)
        try:
            with readiness.needs("NATS", lambda: client.is_connected):
                yield
        finally:
            self._clients.discard(client)
            self._closed.update(client.stats)

    def describe(self) -> Iterable[Metric]:
        """Return the metrics."""
        return self.collect()

    def collect(self) -> Iterable[Metric]:
        """Read the counters, in the thread that answers Prometheus."""
        clients, total = list(self._clients), self._closed.copy()
        for client in clients:
            total.update(client.stats)
        connected = GaugeMetricFamily("ioa_nats_connected", "1 while every NATS connection of the process is connected", labels=[])
        if clients:
            connected.add_metric([], min(client.is_connected for client in clients))
        reconnects = CounterMetricFamily("ioa_nats_reconnects", "Reconnects to NATS", labels=[])
        reconnects.add_metric([], total["reconnects"])
        messages = CounterMetricFamily("ioa_nats_messages", "Messages over NATS, acknowledgements included", labels=["direction"])
        bytes_ = CounterMetricFamily("ioa_nats_bytes", "Payload bytes over NATS", labels=["direction"])
        for direction in ("in", "out"):
            messages.add_metric([direction], total[f"{direction}_msgs"])
            bytes_.add_metric([direction], total[f"{direction}_bytes"])
        return connected, reconnects, messages, bytes_


traffic = ConnectionTraffic()
REGISTRY.register(traffic)
