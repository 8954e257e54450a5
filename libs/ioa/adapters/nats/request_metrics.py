"""How many requests are made and answered, and how long that takes."""

from __future__ import annotations

from functools import cache

from prometheus_client import Counter, Histogram

from ioa.protocol import subjects
from ioa.telemetry.fast_metrics import TalliedTimes, Tally

_BUCKETS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)

requests = Tally(
    "ioa_requests_total",
    "Requests answered, by kind of subject and `ok` or the error's code; `overdue` were dropped, since their callers had gone, as"
    " were those of `rate_limited` whose callers had just been told",
    ["subject", "code"],
)
request_seconds = TalliedTimes("ioa_request_duration_seconds", "Time to answer a request", _BUCKETS, ["subject"])
asked = Counter("ioa_client_requests_total", "Requests made, by kind of subject and `ok` or the error's code", ["subject", "code"])
asked_seconds = Histogram("ioa_client_request_duration_seconds", "Time until a request was answered", ["subject"], buckets=_BUCKETS)

kind_of = cache(subjects.kind_of)
"""The kind of an endpoint's subject, of which there are few. To find it out takes longer than to count."""
