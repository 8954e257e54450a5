"""Metrics of the NATS connections of this process, read from nats-py's counters at each scrape."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from nats.aio.client import Client
from prometheus_client import REGISTRY, Counter
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from ioa.telemetry import readiness

nats_errors = Counter("ioa_nats_errors_total", "Errors of the server or the client library, by class", ["kind"])

_COUNTS = ("in_msgs", "out_msgs", "in_bytes", "out_bytes", "reconnects")


class ConnectionTraffic(Collector):
    """Sum the counters of open and closed connections."""

    def __init__(self) -> None:
        self._clients: set[Client] = set()
        self._before = dict.fromkeys(_COUNTS, 0)

    @contextmanager
    def watch(self, client: Client) -> Iterator[None]:
        """Count a connection while the block runs. The process is not ready while it is disconnected."""
        self._clients.add(client)
        try:
            with readiness.needs("NATS", lambda: client.is_connected):
                yield
        finally:
            self._clients.discard(client)
            for count in _COUNTS:
                self._before[count] += client.stats[count]

    def describe(self) -> Iterable[Metric]:
        """Return the metrics without values."""
        return self._families()

    def collect(self) -> Iterable[Metric]:
        """Read the counters, in the thread that answers Prometheus."""
        clients = list(self._clients)
        total = {count: self._before[count] + sum(client.stats[count] for client in clients) for count in _COUNTS}
        connected, reconnects, messages, bytes_ = self._families()
        if clients:
            connected.add_metric([], min(client.is_connected for client in clients))
        reconnects.add_metric([], total["reconnects"])
        for direction in ("in", "out"):
            messages.add_metric([direction], total[f"{direction}_msgs"])
            bytes_.add_metric([direction], total[f"{direction}_bytes"])
        return connected, reconnects, messages, bytes_

    @staticmethod
    def _families() -> tuple[GaugeMetricFamily, CounterMetricFamily, CounterMetricFamily, CounterMetricFamily]:
        return (
            GaugeMetricFamily("ioa_nats_connected", "1 while every NATS connection of the process is connected", labels=[]),
            CounterMetricFamily("ioa_nats_reconnects", "Reconnects to NATS", labels=[]),
            CounterMetricFamily("ioa_nats_messages", "Messages over NATS, acknowledgements included", labels=["direction"]),
            CounterMetricFamily("ioa_nats_bytes", "Payload bytes over NATS", labels=["direction"]),
        )


traffic = ConnectionTraffic()
REGISTRY.register(traffic)
