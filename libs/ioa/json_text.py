"""JSON that strangers write: as a whole, or in whatever a language model wrote around it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

_MAX_PLAIN_BYTES, _MAX_TEXTS = 1_000_000, 100_000
"""How much may lie outside of its texts, and how many of those it may have: 28 MB of `[],` hold up all for seconds, in whatever
thread they are read, and take a gigabyte."""
_MAX_STARTS = 20
"""Maximum number of positions at which an object is read: from each, it can be the rest of the text."""
_DECODER = json.JSONDecoder()


def parse_json(text: str | bytes) -> Any:
    """Parse JSON.

    Raises:
        ValueError: It is none, or is nested deeper than Python reads.
    """
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("it is nested too deep") from None


def values_in(read: object, most: int) -> int:
    """Count the values in what was parsed, lists and objects too; more than `most` no further than it takes to tell."""
    left, count = [read], 0
    while left and count <= most:
        one = left.pop()
        if isinstance(one, Mapping | list | tuple):
            count += len(one)
            if count <= most:
                left += one.values() if isinstance(one, Mapping) else one
    return count


def parse_texts(data: bytes) -> Any:
    """Parse JSON that is texts for the most part, as what carries words and files is, however large it is.

    Raises:
        ValueError: It is none, is nested deeper than Python reads, or has more of it than texts.
    """
    check_mostly_texts(data)
    return parse_json(data)


def check_mostly_texts(data: bytes) -> None:
    """See that JSON is texts for the most part, before anything parses it.

    Raises:
        ValueError: It has more of it than texts, or is written in something else than UTF-8.
    """
    if b"\0" in data:  # as whatever else JSON may be written in has, where a quote is no quote
        raise ValueError("it is not written in UTF-8")
    pieces = data.replace(rb"\\", b"").replace(rb"\"", b"").split(b'"', 2 * _MAX_TEXTS + 1)
    if len(pieces) > 2 * _MAX_TEXTS + 1 or sum(map(len, pieces[::2])) > _MAX_PLAIN_BYTES:
        raise ValueError("it has too much beside its texts, or too many of them")


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
