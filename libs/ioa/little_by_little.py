"""Reading many things one by one, so that others have their turns between: to read all at once holds up the event loop."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from itertools import islice
from typing import Protocol, TypeVar

_AT_ONCE_BYTES = 64_000


class HasData(Protocol):
    """What is read."""

    @property
    def data(self) -> bytes:
        """Its bytes, by which it costs to read."""


S = TypeVar("S", bound=HasData)


def reaching(sizes: Iterable[int], max_bytes: int | None, limit: int) -> int:
    """Count the first ones, so many at most, up to the one by which they have so many bytes, if that is bounded."""
    number, total = 0, 0
    for size in islice(sizes, limit):
        if max_bytes is not None and total >= max_bytes:
            break
        number, total = number + 1, total + size
    return number


async def little_by_little(found: Iterable[S]) -> AsyncIterator[S]:
    """Yield one after the other, and let others go on behind so many bytes of them."""
    read = 0
    for one in found:
        yield one
        read += len(one.data)
        if read >= _AT_ONCE_BYTES:
            read = 0
            await asyncio.sleep(0)
