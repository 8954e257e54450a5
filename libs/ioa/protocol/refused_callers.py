"""Whose requests gateways refuse again and again, told to the registry, where the doctor asks who is slowed down.

A gateway is outside of the control plane, and answers nobody who asks for statistics. What it tells holds for a while and is told
anew; nothing is stored.
"""

from __future__ import annotations

from collections import Counter
from typing import Annotated

from pydantic import Field

from ioa.protocol.model import FailFast

MOST_NAMED = 100
"""How many a gateway tells of at once."""
_HOLDS_SECONDS = 15.0
_MOST_GATEWAYS = 64

Name = Annotated[str, Field(min_length=1, max_length=300)]


class RefusedCallers(FailFast):
    """Whom one gateway has refused lately.

    Attributes:
        by: Which replica of the gateway.
        requests: How many requests of each: of a user, or of a network without a key.
    """

    by: Name
    requests: Annotated[dict[Name, Annotated[int, Field(ge=1, le=2**53)]], Field(max_length=MOST_NAMED)]


class RefusedCallersList:
    """Whom all gateways together refuse. Times are in seconds, of any clock that only goes forward."""

    def __init__(self) -> None:
        self._told: dict[str, tuple[RefusedCallers, float]] = {}

    def hear(self, told: RefusedCallers, now: float) -> None:
        """Take in what a gateway tells; it replaces what the same one told before."""
        self._told = {by: one for by, one in self._told.items() if now < one[1]}
        if told.by in self._told or len(self._told) < _MOST_GATEWAYS:
            self._told[told.by] = (told, now + _HOLDS_SECONDS)

    def requests(self, now: float) -> Counter[str]:
        """Return how many requests of each were refused."""
        found = Counter[str]()
        for told, until in self._told.values():
            if now < until:
                found.update(told.requests)
        return found
