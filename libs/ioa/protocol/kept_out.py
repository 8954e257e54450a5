"""Whom registries keep out of the server for a flood, told to whoever can refuse them: the gate of nats-server, an auth callout.

What a registry tells holds for a while and is told anew each second. So one that is gone keeps nobody out, and nothing is stored.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from ioa.protocol.model import Instruction, Model

MOST_NAMED = 1_000
"""How many names a registry tells of at once."""
_HOLDS_SECONDS = 15.0
_MOST_REGISTRIES = 64

Name = Annotated[str, Field(min_length=1, max_length=300)]


class KeptOut(Model):
    """Whom one registry keeps out now.

    Attributes:
        by: Which replica of the registry.
        names: What they are called, as `full_name` has it, or the public keys of those without a name.
    """

    by: Name
    names: Annotated[tuple[Name, ...], Field(max_length=MOST_NAMED)] = ()


class Readmit(Instruction):
    """Let in again who is kept out, before the time is over. Who is not kept out stays let in."""

    name: Name


class KeptOutList:
    """Whom all registries together keep out. Times are in seconds, of any clock that only goes forward."""

    def __init__(self) -> None:
        self._told: dict[str, tuple[frozenset[str], float]] = {}

    def hear(self, told: KeptOut, now: float) -> None:
        """Take in what a registry tells; it replaces what the same one told before."""
        self._told = {by: one for by, one in self._told.items() if now < one[1]}
        if told.by in self._told or len(self._told) < _MOST_REGISTRIES:
            self._told[told.by] = (frozenset(told.names), now + _HOLDS_SECONDS)

    def names(self, now: float) -> frozenset[str]:
        """Return whom any of them keeps out."""
        return frozenset(name for names, until in self._told.values() if now < until for name in names)
