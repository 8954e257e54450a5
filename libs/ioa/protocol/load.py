"""Load of an agent: sent with every renewal of its lease, stored in the lease, and removed with it."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, Field

from ioa.protocol.model import Model

MAX_LOAD = 10_000
"""Maximum of a count. Larger counts are cut."""
MAX_SLOTS = 64
"""Maximum slots that the ranking counts, because the agent itself states their number."""

_Number = Annotated[int, Field(ge=0, le=MAX_LOAD)]


class Load(Model):
    """The present work of an agent.

    Attributes:
        tasks: Open tasks of the agent, including tasks that wait for a slot, excluding tasks that wait for an answer.
        groups: Groups it takes part in that have not ended.
        slots: Maximum concurrent tasks, cut to `MAX_SLOTS`.
    """

    tasks: _Number = 0
    groups: _Number = 0
    slots: Annotated[int, Field(ge=1, le=MAX_LOAD), AfterValidator(lambda slots: min(slots, MAX_SLOTS))] = 1

    @classmethod
    def counted(cls, *, tasks: int, groups: int, slots: int) -> Load:
        """Create a load from any counts; a count that is too large is cut."""
        return cls(tasks=min(tasks, MAX_LOAD), groups=min(groups, MAX_LOAD), slots=max(1, min(slots, MAX_SLOTS)))

    @property
    def busy(self) -> float:
        """Tasks per slot: 0 is idle; above 1, tasks wait."""
        return self.tasks / self.slots


IDLE = Load()
