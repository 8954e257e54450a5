"""What processes have logged of errors that nobody foresaw, by where a log says so: words in a text are no traceback."""

from __future__ import annotations

import json
from pathlib import Path

_HEAD = "Traceback (most recent call last):"
_FIELD = "exception"
"""Where a line of JSON holds the traceback of an error (`ioa.telemetry.logs`)."""


def tracebacks(log: Path) -> int:
    """Count the lines of a log with an exception, and the tracebacks that Python wrote between them."""
    with log.open(encoding="utf-8", errors="replace") as lines:
        return sum(map(_is_one, lines))


def _is_one(line: str) -> bool:
    if not line.startswith("{"):
        return line.lstrip(" |+").startswith(_HEAD)
    try:
        told = json.loads(line)
    except ValueError:
        return False
    return isinstance(told, dict) and _FIELD in told
