"""How many requests are made and answered, and how long that takes."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter as Counts
from collections.abc import Iterable
from itertools import accumulate

from prometheus_client import REGISTRY, Counter, Histogram
from prometheus_client.core import CounterMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from ioa.protocol.subjects import kind_of

_BUCKETS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)


class _Row:
    """What is counted of the requests of one kind: by what came of them, and how long they took."""

    __slots__ = ("by_code", "by_time", "seconds")

    def __init__(self) -> None:
        self.by_code = Counts[str]()
        self.by_time = [0] * (len(_BUCKETS) + 1)
        self.seconds = 0.0


class AnsweredRequests(Collector):
    """Counts requests that are answered, in one thread; any may read. Without locks: it is on the path of every message."""

    def __init__(self) -> None:
        self._by_kind: dict[str, _Row] = {}
        self._by_subject: dict[str, _Row] = {}
        """The same rows: to find out the kind of a subject takes longer than all else here."""
        REGISTRY.register(self)

    def count(self, subject: str, code: str) -> None:
        """Count a request on a subject of an endpoint, and what came of it."""
        self._row(subject).by_code[code] += 1

    def observe(self, subject: str, code: str, seconds: float) -> None:
        """Count a request, and how long it took to answer."""
        row = self._row(subject)
        row.by_code[code] += 1
        row.by_time[bisect_left(_BUCKETS, seconds)] += 1
        row.seconds += seconds

    def describe(self) -> Iterable[Metric]:
        """Name the metrics."""
        return self._families()

    def collect(self) -> Iterable[Metric]:
        """Read what was counted."""
        requests, times = self._families()
        bounds = (*map(str, _BUCKETS), "+Inf")
        for kind, row in list(self._by_kind.items()):
            for code, count in list(row.by_code.items()):
                requests.add_metric([kind, code], count)
            if any(by_time := row.by_time.copy()):
                times.add_metric([kind], list(zip(bounds, accumulate(by_time), strict=True)), row.seconds)
        return requests, times

    def _row(self, subject: str) -> _Row:
        row = self._by_subject.get(subject)
        if row is None:
            row = self._by_subject[subject] = self._by_kind.setdefault(kind_of(subject), _Row())
        return row

    @staticmethod
    def _families() -> tuple[CounterMetricFamily, HistogramMetricFamily]:
        return CounterMetricFamily(
            "ioa_requests_total",
            "Requests answered, by kind of subject and `ok` or the error's code; `overdue` were dropped, since their callers had"
            " gone, as were those of `rate_limited` whose callers had just been told",
            labels=["subject", "code"],
        ), HistogramMetricFamily("ioa_request_duration_seconds", "Time to answer a request", labels=["subject"])


answered = AnsweredRequests()
asked = Counter("ioa_client_requests_total", "Requests made, by kind of subject and `ok` or the error's code", ["subject", "code"])
asked_seconds = Histogram("ioa_client_request_duration_seconds", "Time until a request was answered", ["subject"], buckets=_BUCKETS)
