"""Asking again while nobody answers."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

import structlog

from ioa.agent.agent_metrics import retries
from ioa.errors import IoaError, NotPermittedError, UnavailableError
from ioa.retry import until_available

T = TypeVar("T")

_log = structlog.get_logger(__name__)


def _always(_error: UnavailableError) -> bool:
    """Ask without end."""
    return True


async def until_answered(
    ask: Callable[[], Awaitable[T]], *, goes_on: Callable[[UnavailableError], bool] = _always, **context: object
) -> T:
    """Repeat an agent's idempotent request until it is answered, as `until_available` does; `context` goes to the log.

    Raises:
        UnavailableError: It was not answered, and `goes_on` says no to that.
    """

    def count(error: UnavailableError) -> None:
        if not goes_on(error):
            raise error
        retries.inc()
        hint = {"hint": error.hint} if isinstance(error, NotPermittedError) else {}
        _log.warning("asking_again", error=error.message, **hint, **context)

    return await until_available(ask, count)


def seconds_to_wait(error: IoaError) -> float:
    """Return for how long whoever was refused was told to wait before he asks again; 0 if nobody said."""
    told = error.retry_after if isinstance(error, UnavailableError) else None
    return 0.0 if told is None else told.total_seconds()
