"""Metrics for the path of every message, without locks: for one thread that counts and any that reads.

An increment in a dictionary costs a fifth of that of prometheus-client's counter.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from itertools import accumulate

from prometheus_client import REGISTRY
from prometheus_client.core import CounterMetricFamily, HistogramMetricFamily, Metric
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


class TalliedTimes(Collector):
    """A histogram of seconds. `bounds` are the upper ends of its buckets, in order; the last bucket has none."""

    def __init__(self, name: str, documentation: str, bounds: Sequence[float]) -> None:
        self._name = name
        self._documentation = documentation
        self._bounds = tuple(bounds)
        self._counts = [0] * (len(self._bounds) + 1)
        self._sum = 0.0
        REGISTRY.register(self)

    def observe(self, seconds: float) -> None:
        """Count a time; one below nothing, as clocks that differ may show it, is nothing."""
        self._counts[bisect_left(self._bounds, seconds)] += 1
        if seconds > 0:
            self._sum += seconds

    def describe(self) -> Iterable[Metric]:
        """Name the metric."""
        return [HistogramMetricFamily(self._name, self._documentation, labels=())]

    def collect(self) -> Iterable[Metric]:
        """Read the counts, in any thread."""
        family = HistogramMetricFamily(self._name, self._documentation, labels=())
        bounds = (*(str(bound) for bound in self._bounds), "+Inf")
        family.add_metric([], list(zip(bounds, accumulate(self._counts.copy()), strict=True)), self._sum)
        return [family]
