"""Size of a page: as many items as fit a limit of bytes."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice


def count_page(sizes: Iterable[int], max_bytes: int | None, limit: int) -> int:
    """Return how many of the first items form a page: at most `limit`, and none after the item that reaches `max_bytes`."""
    number, total = 0, 0
    for size in islice(sizes, limit):
        if max_bytes is not None and total >= max_bytes:
            break
        number, total = number + 1, total + size
    return number
