"""Metrics of each process: its version, its readiness, and the lag of its event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from platform import python_version

from prometheus_client import Gauge, Histogram, disable_created_metrics

from ioa.distribution import installed_version

LOOK_EVERY = timedelta(seconds=1)

disable_created_metrics()  # type: ignore[no-untyped-call]

build_info = Gauge("ioa_build_info", "Always 1; the labels say what runs", ["service", "version", "python"])
ready = Gauge("ioa_ready", "1 while the process is ready to serve, as /readyz says")
event_loop_lag = Histogram(
    "ioa_event_loop_lag_seconds",
    "How late the event loop came back to a callback that was due; looked at once a second",
    buckets=(0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5),
)

_before_scrapes: list[Callable[[], None]] = []


def describe_build(service: str) -> None:
    """Set the metric with the service and its version."""
    build_info.labels(service, installed_version(), python_version()).set(1)


async def watch_event_loop() -> None:
    """Measure the lag of the event loop periodically until cancelled."""
    loop = asyncio.get_running_loop()
    while True:
        due = loop.time() + LOOK_EVERY.total_seconds()
        await asyncio.sleep(LOOK_EVERY.total_seconds())
        event_loop_lag.observe(max(0.0, loop.time() - due))


@contextmanager
def before_scrapes(update: Callable[[], None]) -> Iterator[None]:
    """Call `update` on the event loop before each scrape, until the block ends."""
    _before_scrapes.append(update)
    try:
        yield
    finally:
        _before_scrapes.remove(update)


def update_gauges() -> None:
    """Call the functions of `before_scrapes`."""
    for update in _before_scrapes:
        update()
