"""Rate limit for each caller: a token bucket, computed by the generic cell rate algorithm (ITU-T I.371)."""

from __future__ import annotations

from dataclasses import dataclass

_MAX_RETRY_SECONDS = 5.0
"""Longest retry time of a rejection, in seconds."""
_MAX_BUCKETS = 16_384
"""Number of buckets above which full buckets are removed."""
_ROUNDING = 0.001
"""Tolerance, as a part of a request, because sums of times are rounded."""


@dataclass(frozen=True)
class RateLimit:
    """A rate limit.

    Attributes:
        per_second: Sustained cost per second, in requests.
        burst: Largest cost at once after a pause, in requests.
    """

    per_second: float
    burst: int


class _Bucket:
    __slots__ = ("full_at", "retry_at")

    def __init__(self, now: float) -> None:
        self.full_at = now
        self.retry_at = now


class RateLimiter:
    """Limit the request rate of each caller with one `RateLimit`.

    All times are seconds of the same monotonic clock. A request that costs more than the burst counts as a full burst.
    """

    def __init__(self, rate: RateLimit) -> None:
        self._interval = 1 / rate.per_second
        self._burst = rate.burst
        self._buckets: dict[str, _Bucket] = {}
        self._max_buckets = _MAX_BUCKETS

    def acquire(self, caller: str, now: float, cost: float = 1) -> float:
        """Take `cost` from the caller's bucket and return 0, or return the seconds to wait before a retry.

        A rejection takes nothing. The retry times of a caller are spread at its rate, so that its retries do not collide.
        """
        bucket = self._buckets.get(caller)
        if bucket is None:
            self._remove_full_buckets(now)
            bucket = self._buckets[caller] = _Bucket(now)
        taken = min(cost, self._burst) * self._interval
        full_at = max(bucket.full_at, now) + taken
        excess = full_at - now - (self._burst + _ROUNDING) * self._interval
        if excess <= 0:
            bucket.full_at = full_at
            return 0.0
        bucket.retry_at = min(max(bucket.retry_at + taken, now + excess), now + _MAX_RETRY_SECONDS)
        return bucket.retry_at - now

    def _remove_full_buckets(self, now: float) -> None:
        if len(self._buckets) >= self._max_buckets:
            self._buckets = {caller: bucket for caller, bucket in self._buckets.items() if bucket.full_at > now}
            self._max_buckets = max(_MAX_BUCKETS, 2 * len(self._buckets))
