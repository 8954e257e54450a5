"""What travels beside requests and answers, in headers: whose fault an error is, when to come back, how long somebody waits.

An error keeps its class on the way. How long the caller will wait is told only where it is unusual, so that nobody works for one
who has gone: headers would cost every message some microseconds.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import timedelta

from ioa.errors import IoaError, RateLimitedError, from_wire

_CODE, _MESSAGE, _HINT = "Nats-Service-Error-Code", "Nats-Service-Error", "Ioa-Hint"
_RETRY_AFTER = "Ioa-Retry-After"
"""In how many ms a caller is to come back that asks too often."""
_PATIENCE = "Ioa-Patience"
"""How many ms the caller of a request waits for the answer."""
USUAL_PATIENCE = timedelta(seconds=5)
"""How long a caller waits that does not say."""
_LONGEST_PATIENCE = timedelta(days=1)
_TOLD_CHARS = 2_000
"""How much is told of what was wrong."""


def error_headers(error: IoaError) -> dict[str, str]:
    """Return what an answer tells of an error besides its code and message, which micro services tell themselves (ADR-32)."""
    headers = {_HINT: one_line(error.hint)} if error.hint else {}
    if isinstance(error, RateLimitedError) and error.retry_after is not None:
        headers[_RETRY_AFTER] = str(math.ceil(error.retry_after / timedelta(milliseconds=1)))
    return headers


def error_in(headers: Mapping[str, str]) -> IoaError | None:
    """Return the error that an answer tells of, as the class it was raised as; None if it tells of none."""
    if _CODE not in headers:
        return None
    error = from_wire(headers[_CODE], headers.get(_MESSAGE, ""), headers.get(_HINT, ""))
    if isinstance(error, RateLimitedError):
        error.retry_after = _retry_after(headers)
    return error


def patience_headers(patience: timedelta) -> dict[str, str] | None:
    """Return what a request tells of how long its caller waits; None if that is as long as usual."""
    return None if patience == USUAL_PATIENCE else {_PATIENCE: str(int(patience.total_seconds() * 1_000))}


def patience_in(headers: Mapping[str, str] | None) -> float:
    """Read for how many seconds a caller waits; as long as usual if it does not say, or says nothing that can be read.

    Nobody waits for longer than a day: what waits without end would never give its place back.
    """
    try:
        waits = float((headers or {})[_PATIENCE]) / 1_000
    except (KeyError, ValueError):
        return USUAL_PATIENCE.total_seconds()
    return min(waits, _LONGEST_PATIENCE.total_seconds()) if waits >= 0 else USUAL_PATIENCE.total_seconds()


def one_line(text: str) -> str:
    """Return what may stand in a header of a text."""
    return " ".join(text[:_TOLD_CHARS].split())


def _retry_after(headers: Mapping[str, str]) -> timedelta | None:
    try:
        return timedelta(milliseconds=float(headers[_RETRY_AFTER]))
    except (KeyError, ValueError, OverflowError):
        return None
