"""Rate limits of callers, on a clock that the test moves."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ioa.adapters.nats.requests.rate_limit import RateLimit, RateLimiter


def test_burst_is_accepted_then_the_rate() -> None:
    """A burst passes at once; afterwards requests pass at the sustained rate."""
    limiter = RateLimiter(RateLimit(per_second=10, burst=3))
    assert [limiter.acquire("ada", 0.0) == 0 for _ in range(4)] == [True, True, True, False]
    assert [limiter.acquire("ada", now) == 0 for now in (0.11, 0.15, 0.21)] == [True, False, True]


def test_callers_are_limited_separately() -> None:
    """A caller above its rate does not slow down another caller."""
    limiter = RateLimiter(RateLimit(per_second=1, burst=1))
    assert [limiter.acquire(caller, 0.0) for caller in ("ada", "ada", "eve")] == [0.0, 1.0, 0.0]


def test_cost_above_the_burst_counts_as_a_full_burst() -> None:
    """A request that costs more than the burst is accepted when the bucket is full."""
    limiter = RateLimiter(RateLimit(per_second=10, burst=5))
    assert limiter.acquire("ada", 0.0, cost=1_000) == 0
    assert limiter.acquire("ada", 0.0) > 0


@given(callers=st.integers(1, 200), rate=st.floats(1, 1_000), burst=st.integers(1, 100))
def test_caller_that_obeys_retry_times_is_accepted_at_its_rate(callers: int, rate: float, burst: int) -> None:
    """Requests that retry when they are told to are all accepted at about the sustained rate."""
    limiter = RateLimiter(RateLimit(rate, burst))
    waiting = [0.0] * callers
    done = 0.0
    for _ in range(callers * 100):
        now = min(waiting)
        waiting.remove(now)
        if wait := limiter.acquire("ada", now):
            waiting.append(now + wait)
        else:
            done = now
        if not waiting:
            break
    assert not waiting
    assert done <= 1.2 * max(0, callers - burst) / rate + 6


def test_full_buckets_are_removed_and_others_kept() -> None:
    """Memory is bounded: callers that have not asked for a while are removed, and limits of the others hold."""
    limiter = RateLimiter(RateLimit(per_second=1, burst=1))
    for number in range(16_384):
        limiter.acquire(f"caller-{number}", 0.0)
    limiter.acquire("ada", 1.5)
    limiter.acquire("eve", 1.6)
    assert len(limiter._buckets) == 2
    assert limiter.acquire("ada", 1.6) > 0
