"""Asking again while nobody answers."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

import structlog

from ioa.agent.agent_metrics import retries
from ioa.errors import UnavailableError

_FIRST_RETRY_SECONDS = 0.1
_LONGEST_RETRY_SECONDS = 2.0

T = TypeVar("T")

_log = structlog.get_logger(__name__)


async def until_answered(ask: Callable[[], Awaitable[T]], **context: object) -> T:
    """Repeat an idempotent request until it is answered, pausing longer each time; `context` goes to the log.

    Any error but `UnavailableError` is an answer and is raised. Who cannot wait cancels.
    """
    delay = _FIRST_RETRY_SECONDS
    while True:
        try:
            return await ask()
        except UnavailableError as error:
            retries.inc()
            _log.warning("asking_again", error=error.message, **context)
        await asyncio.sleep(delay)
        delay = min(delay * 2, _LONGEST_RETRY_SECONDS)
