"""Limits of API keys at one gateway."""

from __future__ import annotations

import pytest

from ioa.errors import RateLimitedError
from ioa_gateway.key_limits import REQUEST_RATE, CallerLimits


def test_request_rate_limits_one_key() -> None:
    """Requests above the burst are rejected with a retry time; another key is not affected."""
    now = 0.0
    limits = CallerLimits(lambda: now)
    for _ in range(REQUEST_RATE.burst):
        with limits.request("a"):
            pass
    with pytest.raises(RateLimitedError) as rejection, limits.request("a"):
        pass
    with limits.request("b"):
        pass
    assert rejection.value.retry_after is not None
    now += rejection.value.retry_after.total_seconds()
    with limits.request("a"):
        pass
