"""One place where the many ways of NATS not answering become one error that says a retry can help."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

import nats.errors
from nats.js.errors import APIError

from ioa.errors import UnavailableError

_WRONG_LAST_SEQUENCE = (10071, 10164)
"""JetStream's codes for an expected sequence that is not the last one; the second comes from a replicated stream in which another
write to the subject is on its way."""


def lost_race(error: APIError) -> bool:
    """Whether JetStream refused a write because somebody else wrote to its subject first."""
    return error.err_code in _WRONG_LAST_SEQUENCE


@contextmanager
def unavailable_unless_answered(what: str) -> Iterator[None]:
    """Turn time-outs, lost connections and refusals of JetStream into `UnavailableError`.

    Args:
        what: What was asked, as the subject of a sentence.
    """
    try:
        with heeding_cancellation():
            yield
    except APIError as error:
        raise UnavailableError(f"{what} was refused by JetStream: {error.description or error}.") from error
    except (nats.errors.Error, TimeoutError, OSError) as error:
        raise UnavailableError(f"{what} is out of reach ({str(error) or type(error).__name__}).") from error


@contextmanager
def heeding_cancellation() -> Iterator[None]:
    """Raise `CancelledError` at the end if the task was cancelled in the block and nothing came of it.

    nats-py waits by `asyncio.wait_for`, which in Python 3.11 drops a cancellation that comes together with the answer
    (python/cpython#86296). A loop that runs until it is cancelled would then run for ever.
    """
    task = asyncio.current_task()
    before = task.cancelling() if task is not None else 0
    yield
    if task is not None and task.cancelling() > before:
        raise asyncio.CancelledError
