"""A counter for the path of every message: one increment in a dictionary, a fifth of what prometheus-client's counter costs."""

from __future__ import annotations

from collections.abc import Iterable

from prometheus_client import REGISTRY
from prometheus_client.core import CounterMetricFamily, Metric
from prometheus_client.registry import Collector

UNLABELLED = ""
"""The key of the only count of a tally without a label."""


class Tally(Collector):
    """Count things, or things by a label whose values are known beforehand: `tally.counts["x"] += 1`, in one thread only."""

    def __init__(self, name: str, documentation: str, label: str | None = None, values: Iterable[str] = (UNLABELLED,)) -> None:
        self.counts = dict.fromkeys(values, 0)
        self.name = name
        self.labels = () if label is None else (label,)
        self._documentation = documentation
        REGISTRY.register(self)

    def describe(self) -> Iterable[Metric]:
        """Name the metric."""
        return [self._family()]

    def collect(self) -> Iterable[Metric]:
        """Read the counts, in any thread: their keys never change."""
        family = self._family()
        for value, count in self.counts.items():
            family.add_metric([str(value)] if self.labels else [], count)
        return [family]

    def _family(self) -> CounterMetricFamily:
        return CounterMetricFamily(self.name, self._documentation, labels=self.labels)
