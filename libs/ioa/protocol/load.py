"""How busy an agent is: told with every renewal of its lease, kept in the lease, and gone with it."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, Field

from ioa.protocol.model import Model

MAX_LOAD = 10_000
"""Who has more to do says this much."""
MAX_SLOTS = 64
"""As many tasks at once an agent is ranked by at most, however many it does: what it says of itself decides whom goals go to."""

_Number = Annotated[int, Field(ge=0, le=MAX_LOAD)]


class Load(Model):
    """What an agent has to do.

    Attributes:
        tasks: Open tasks of the agent, including tasks that wait for a slot, excluding tasks that wait for an answer.
        groups: Groups it takes part in that have not ended.
        slots: How many tasks it does at once; more than `MAX_SLOTS` is read as that many.
    """

    tasks: _Number = 0
    groups: _Number = 0
    slots: Annotated[int, Field(ge=1, le=MAX_LOAD), AfterValidator(lambda slots: min(slots, MAX_SLOTS))] = 1

    @classmethod
    def counted(cls, *, tasks: int, groups: int, slots: int) -> Load:
        """Make a load of any counts; what is too large is cut."""
        return cls(tasks=min(tasks, MAX_LOAD), groups=min(groups, MAX_LOAD), slots=max(1, min(slots, MAX_SLOTS)))

    @property
    def busy(self) -> float:
        """Tasks for each slot: 0 is idle, 1 has every slot taken, more has tasks waiting."""
        return self.tasks / self.slots


IDLE = Load()
