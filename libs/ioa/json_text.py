"""JSON of strangers: a whole document, or objects in the text of a language model."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

_MAX_STARTS = 20
"""Maximum number of positions at which an object is read: from each, it can be the rest of the text."""
_DECODER = json.JSONDecoder()


def parse_json(text: str | bytes) -> Any:
    """Parse JSON.

    Raises:
        ValueError: The text is not JSON, or is nested too deeply.
    """
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def values_in(read: object, most: int) -> int:
    """Count the values of a parsed document, including lists and objects; stop above `most`."""
    left, count = [read], 0
    while left and count <= most:
        one = left.pop()
        if isinstance(one, Mapping | list | tuple):
            count += len(one)
            if count <= most:
                left += one.values() if isinstance(one, Mapping) else one
    return count


def objects_in(text: str) -> Iterator[dict[str, Any]]:
    """Yield the outermost JSON objects in a text, skipping prose and Markdown fences."""
    at = text.find("{")
    for _ in range(_MAX_STARTS):
        if at < 0:
            return
        try:
            found, end = _DECODER.raw_decode(text, at)
        except (ValueError, RecursionError):
            found, end = None, at + 1
        if found:
            yield found
        at = text.find("{", end)


def find_object(text: str) -> dict[str, Any] | None:
    """Return the first JSON object in a text; None if there is none."""
    return next(objects_in(text), None)
