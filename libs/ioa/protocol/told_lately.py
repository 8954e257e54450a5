"""What replicas of a service tell now and then. It holds for a while and is not stored: of one that is gone soon nothing holds."""

from __future__ import annotations

from typing import Generic, Protocol, TypeVar

_HOLDS_SECONDS = 15.0
_MOST_REPLICAS = 64


class Told(Protocol):
    """Something that one replica tells."""

    @property
    def by(self) -> str:
        """Which replica."""
        ...


T = TypeVar("T", bound=Told)


class ToldLately(Generic[T]):
    """What all replicas have told that holds still. Times are in seconds, of any clock that only goes forward."""

    def __init__(self) -> None:
        self._told: dict[str, tuple[T, float]] = {}

    def hear(self, told: T, now: float) -> None:
        """Take in what a replica tells; it replaces what the same one told before."""
        self._told = {by: one for by, one in self._told.items() if now < one[1]}
        if told.by in self._told or len(self._told) < _MOST_REPLICAS:
            self._told[told.by] = (told, now + _HOLDS_SECONDS)

    def held(self, now: float) -> list[T]:
        """Return what holds, of each replica."""
        return [told for told, until in self._told.values() if now < until]
