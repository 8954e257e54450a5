"""One place where the many ways of NATS not answering become one error that says a retry can help."""

from __future__ import annotations

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
        yield
    except APIError as error:
        raise UnavailableError(f"{what} was refused by JetStream: {error.description or error}.") from error
    except (nats.errors.Error, TimeoutError, OSError) as error:
        raise UnavailableError(f"{what} is out of reach ({str(error) or type(error).__name__}).") from error
