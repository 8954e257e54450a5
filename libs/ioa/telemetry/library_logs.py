"""What agents and services log in somebody else's process, handed to Python's own logging, where pytest and programs look."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import structlog

from ioa.telemetry.log_context import add_ids


@contextmanager
def handed_to_logging() -> Iterator[None]:
    """Configure structlog for the block; one that is configured already is the author's, and left alone.

    Warnings and errors are shown; a lower level of Python's logging, such as pytest's `--log-level=INFO`, shows more.
    """
    if structlog.is_configured():
        yield
        return
    structlog.configure(
        processors=[
            structlog.stdlib.filter_by_level,
            add_ids,
            structlog.processors.format_exc_info,
            structlog.processors.KeyValueRenderer(key_order=["event"]),
        ],
        wrapper_class=structlog.stdlib.BoundLogger,
        logger_factory=structlog.stdlib.LoggerFactory(),
    )
    try:
        yield
    finally:
        structlog.reset_defaults()
