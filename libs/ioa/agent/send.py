"""Repeats a request until it is answered."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import ParamSpec, TypeVar

import structlog

from ioa.agent.metrics import retries
from ioa.errors import IoaError, NotPermittedError, UnavailableError
from ioa.retry import until_available

MAX_TEXT_BYTES = 160_000
"""Maximum bytes of one text of a message. A log entry contains a conclusion twice and must fit into one NATS message."""

P = ParamSpec("P")
T = TypeVar("T")

_log = structlog.get_logger(__name__)


async def until_answered(ask: Callable[P, Awaitable[T]], *args: P.args, **kwargs: P.kwargs) -> T:
    """Repeat an idempotent request until it is answered, after `retry_after` where the error contains it."""

    def count(error: UnavailableError) -> None:
        retries.inc()
        hint = {"hint": error.hint} if isinstance(error, NotPermittedError) else {}
        _log.warning("request_repeated", error=error.message, **hint)

    return await until_available(lambda: ask(*args, **kwargs), count)


def seconds_to_wait(error: IoaError) -> float:
    """Return the error's `retry_after` in seconds; 0 without one."""
    after = error.retry_after if isinstance(error, UnavailableError) else None
    return 0.0 if after is None else after.total_seconds()
