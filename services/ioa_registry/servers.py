"""What is known of each nats-server, of those that were heard of last: each start of one has a name of its own."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Generic, TypeVar

T = TypeVar("T")

_MOST = 64


class OfServers(Generic[T]):
    """Something of each server. Of too many the one is forgotten that was not heard of for longest."""

    def __init__(self) -> None:
        self._of: dict[str, T] = {}

    def get(self, server: str) -> T | None:
        """Return what is known of a server."""
        return self._of.get(server)

    def put(self, server: str, known: T) -> None:
        """Replace what is known of a server, of which something was heard now."""
        self._of.pop(server, None)
        self._of[server] = known
        if len(self._of) > _MOST:
            del self._of[next(iter(self._of))]

    def all(self) -> Iterable[T]:
        """Return what is known of each."""
        return self._of.values()
