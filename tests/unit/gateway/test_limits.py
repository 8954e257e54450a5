"""Limits of API keys at one gateway."""

from __future__ import annotations

from contextlib import ExitStack

import pytest

from ioa.errors import RateLimitedError
from ioa_gateway.limits import MAX_REQUESTS, REQUEST_RATE, CallerLimits


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


def test_concurrent_requests_of_one_key_are_limited() -> None:
    """The end of a request makes room for another one."""
    limits = CallerLimits(lambda: 0.0)
    with ExitStack() as held:
        for _ in range(MAX_REQUESTS):
            held.enter_context(limits.request("a"))
        with pytest.raises(RateLimitedError), limits.request("a"):
            pass
        with limits.request("b"):
            pass
    assert limits.running("a") == 0
    with limits.request("a"):
        pass
