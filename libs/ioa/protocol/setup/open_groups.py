"""Entries of the index of open groups: each accepted goal and each launched group, until its end is published."""

from __future__ import annotations

from ioa.protocol.ids import GoalIdField, PoolIdField
from ioa.protocol.model import Model, Time


class QueuedOffer(Model):
    """An offer of a goal to a pool: its sequence in the queue, and the time of the offer."""

    pool: PoolIdField
    seq: int
    at: Time


class OpenGroup(Model):
    """An entry of the index of open groups: the group's goal and deadline.

    Attributes:
        offers: Offers of a goal without a group, in order; only the last one is valid.
        waits: Whether the goal waits for its addressee, or for any agent, and is not offered to other pools.
    """

    goal_id: GoalIdField
    deadline: Time
    offers: tuple[QueuedOffer, ...] = ()
    waits: bool = False
