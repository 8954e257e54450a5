"""Whom registries keep out of the server for a flood, told to whoever can refuse them: the gate of nats-server, an auth callout.

What a registry tells holds for a while and is told anew each second. So one that is gone keeps nobody out, and nothing is stored.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from ioa.protocol.model import Instruction, Model
from ioa.protocol.told_lately import ToldLately

MOST_NAMED = 1_000
"""How many names a registry tells of at once."""

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


class KeptOutList(ToldLately[KeptOut]):
    """Whom all registries together keep out."""

    def names(self, now: float) -> frozenset[str]:
        """Return whom any of them keeps out."""
        return frozenset(name for told in self.held(now) for name in told.names)
