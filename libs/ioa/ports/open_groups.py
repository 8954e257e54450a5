"""The index of what is open: every goal that was accepted and every group that was launched, until its end is made known."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Protocol

from pydantic import Field

from ioa.protocol.ids import CommId, GoalIdField, PoolIdField
from ioa.protocol.model import Model, Time


class QueuedOffer(Model):
    """A goal that was offered to a pool, to be led by one of its agents: where it waits in the queue, and since when."""

    pool: PoolIdField
    seq: int
    at: Time


class QueuedGoal(Model):
    """A goal that waits for whom it names, or for anybody: in whose queue, None being anybody's, and where there.

    `taken` is since when it is known that somebody has taken it.
    """

    pool: PoolIdField | None
    seq: int
    taken: Time | None = None


class OpenGroup(Model):
    """What is known of an open group without its log: the goal it works for, and when it ends at the latest.

    Attributes:
        offers: To whom a goal without a group was offered, one after the other; only the last one stands.
        waits: Whether it waits for whom it names, or for anybody, and is offered to nobody else.
        queued: Where it waits then.
        dropped: How often it was put back there, since who took it did not lead it.
        order: The identity of the published message; empty of a group that was launched.
    """

    goal_id: GoalIdField
    deadline: Time
    offers: tuple[QueuedOffer, ...] = ()
    waits: bool = False
    queued: QueuedGoal | None = None
    dropped: int = 0
    order: Annotated[str, Field(exclude_if=operator.not_)] = ""


@dataclass(frozen=True)
class OpenPage:
    """A page of the index. `last` is where the next one begins; with `complete` there is none."""

    comm_ids: Sequence[CommId]
    last: int
    complete: bool


class OpenGroups(Protocol):
    """The index. Nobody follows it: who needs to know what is open reads it a page at a time.

    An entry is put before anything else is done for a goal or a group, and removed after all is done that its end asks for. So what
    is missing here needs nothing; what is here may have ended.
    """

    async def put(self, comm_id: CommId, group: OpenGroup) -> None:
        """Note that a group is open, or is about to be."""

    async def find(self, comm_id: CommId) -> OpenGroup | None:
        """Read what is noted of a group, from the index's leader; None if it is not open."""

    async def remove(self, comm_id: CommId) -> None:
        """Forget a group that has ended. To do it again changes nothing."""

    async def page(self, *, after: int, limit: int) -> OpenPage:
        """List open groups in the order in which they were put, from behind `after` on, which is 0 at first."""
