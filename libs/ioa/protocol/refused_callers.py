"""Whose requests gateways refuse again and again, told to the registry, where the doctor asks who is slowed down.

A gateway is outside of the control plane, and answers nobody who asks for statistics. What it tells holds for a while and is told
anew; nothing is stored.
"""

from __future__ import annotations

from collections import Counter
from typing import Annotated

from pydantic import Field

from ioa.protocol.model import FailFast
from ioa.protocol.told_lately import ToldLately

MOST_NAMED = 100
"""How many a gateway tells of at once."""

Name = Annotated[str, Field(min_length=1, max_length=300)]


class RefusedCallers(FailFast):
    """Whom one gateway has refused lately.

    Attributes:
        by: Which replica of the gateway.
        requests: How many requests of each: of a user, or of a network without a key.
    """

    by: Name
    requests: Annotated[dict[Name, Annotated[int, Field(ge=1, le=2**53)]], Field(max_length=MOST_NAMED)]


class RefusedCallersList(ToldLately[RefusedCallers]):
    """Whom all gateways together refuse."""

    def requests(self, now: float) -> Counter[str]:
        """Return how many requests of each were refused."""
        found = Counter[str]()
        for told in self.held(now):
            found.update(told.requests)
        return found
