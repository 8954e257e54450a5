"""Limits of API keys at one gateway: request rate, concurrent requests, and concurrent reads of pages."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta

from ioa.adapters.nats.requests.rate_limit import RateLimit, RateLimiter
from ioa.errors import RateLimitedError
from ioa.fair_semaphore import FairSemaphore

REQUEST_RATE = RateLimit(per_second=50, burst=200)
"""Requests of one key."""
MAX_REQUESTS = 100
"""Concurrent requests of one key. A stream counts until it ends."""
_MAX_PAGE_READS = 16
"""Concurrent reads of pages, goals and lists."""


class CallerLimits:
    """The limits of all keys. `running` counts the requests of each key; `pages` limits reads of pages, round-robin by user."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._rate = RateLimiter(REQUEST_RATE)
        self.running = Counter[str]()
        self.pages = FairSemaphore(_MAX_PAGE_READS)

    @contextmanager
    def request(self, key_id: str) -> Iterator[None]:
        """Count a request of a key while the block runs; `RateLimitedError`: the key has reached one of its limits."""
        if retry_after := self._rate.acquire(key_id, self._clock()):
            rate = f"{REQUEST_RATE.per_second:g} requests per second"
            raise RateLimitedError(f"This key sends more than {rate}.", retry_after=timedelta(seconds=retry_after))
        if self.running[key_id] >= MAX_REQUESTS:
            what, hint = f"This key has {MAX_REQUESTS} open requests and streams.", "Close some of them."
            raise RateLimitedError(what, hint=hint, retry_after=timedelta(seconds=1))
        self.running[key_id] += 1
        try:
            yield
        finally:
            self.running[key_id] -= 1
            self.running = +self.running  # without zeros
