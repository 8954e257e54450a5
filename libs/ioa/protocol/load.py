"""How busy an agent is: told with every renewal of its lease, kept in the lease, and gone with it."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from ioa.protocol.model import Model

MAX_LOAD = 10_000
"""Who has more to do says this much."""

_Number = Annotated[int, Field(ge=0, le=MAX_LOAD)]


class Load(Model):
    """What an agent has to do.

    Attributes:
        tasks: Open tasks it was given, those that wait for a slot included.
        groups: Groups it takes part in that have not ended.
        slots: How many tasks it does at once.
    """

    tasks: _Number = 0
    groups: _Number = 0
    slots: Annotated[int, Field(ge=1, le=MAX_LOAD)] = 1

    @classmethod
    def counted(cls, *, tasks: int, groups: int, slots: int) -> Load:
        """Make a load of any counts; what is too large is cut."""
        return cls(tasks=min(tasks, MAX_LOAD), groups=min(groups, MAX_LOAD), slots=max(1, min(slots, MAX_LOAD)))

    @property
    def busy(self) -> float:
        """Tasks for each slot: 0 is idle, 1 has every slot taken, more has tasks waiting."""
        return self.tasks / self.slots


IDLE = Load()
