"""What is logged while extremes are tried: a bug that a service survives is one all the same."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from structlog.testing import capture_logs

_OF_BUGS = ("error", "critical")


@contextmanager
def no_bug_logged() -> Iterator[None]:
    """See that nothing logs an error, or a traceback, which a service does that goes on behind a bug."""
    with capture_logs() as lines:
        yield
    assert [line for line in lines if line["log_level"] in _OF_BUGS or line.get("exc_info")] == []
