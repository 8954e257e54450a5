"""How the NATS connections of this process are doing, read off nats-py's own counters when Prometheus asks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from nats.aio.client import Client
from prometheus_client import REGISTRY, Counter
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from ioa.telemetry import readiness

nats_errors = Counter("ioa_nats_errors_total", "What the server or the client library complained of, by class", ["kind"])

_COUNTS = ("in_msgs", "out_msgs", "in_bytes", "out_bytes", "reconnects")


class ConnectionTraffic(Collector):
    """Sum up the connections that are open, and those that were."""

    def __init__(self) -> None:
        self._clients: set[Client] = set()
        self._before = dict.fromkeys(_COUNTS, 0)

    @contextmanager
    def watch(self, client: Client) -> Iterator[None]:
        """Count a connection until the block ends; without it the process is not ready."""
        self._clients.add(client)
        try:
            with readiness.needs("NATS", lambda: client.is_connected):
                yield
        finally:
            self._clients.discard(client)
            for count in _COUNTS:
                self._before[count] += client.stats[count]

    def describe(self) -> Iterable[Metric]:
        """Name the metrics."""
        return self._families()

    def collect(self) -> Iterable[Metric]:
        """Read the counters. Called by the thread that answers Prometheus."""
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
            GaugeMetricFamily("ioa_nats_connected", "1 while every NATS connection of the process stands", labels=[]),
            CounterMetricFamily("ioa_nats_reconnects", "How often a NATS connection was renewed", labels=[]),
            CounterMetricFamily("ioa_nats_messages", "Messages over NATS, acknowledgements included", labels=["direction"]),
            CounterMetricFamily("ioa_nats_bytes", "Payload bytes over NATS", labels=["direction"]),
        )


traffic = ConnectionTraffic()
REGISTRY.register(traffic)
