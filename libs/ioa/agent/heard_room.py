"""How much of what was said in all groups of a process's agents stays in memory and on its disk, and which group is left then.

A member has all that it has heard at hand for as long as its group lasts: its brain, its functions and its tasks are shown it. Who
leads a goal may speak for hours, in a hundred goals at once, to agents that only listen. To show a member less than was said would
have it answer of half of it. So a group for which there is no room is left, and told why.

An entry lies on the disk with the state that it led to, of which open tasks and what they ask may have a hundred thousand bytes,
however short it is itself. Who starts anew reads all of it, and whose disk is full remembers nothing any more, of nobody's groups.
"""

from __future__ import annotations

import sys
from collections import Counter, defaultdict
from collections.abc import Collection, Mapping
from datetime import datetime
from typing import Protocol

from ioa.group.encoding import encode_state
from ioa.group.events import Entry
from ioa.protocol.ids import UserId
from ioa.protocol.model import Model

MAX_HEARD_BYTES = 128 * 1024 * 1024
"""What all groups that a process's agents are in may take up together, if nothing is said. The log of one has 64 MB at most, and
of a team that has said 20 short things each member keeps 0.1 MB."""

_MOST_WAITING_BYTES, _OF_ONE = 4 * 1024 * 1024, 4
"""What members may keep until they apply it, counted as what they have heard is, and which part of it may be one member's. Of that
63 reports of 10 kB that come at once have two thirds. Where states are large all of it may take a hundred times as much."""

_STORED_PARTS = 4
"""So many times as much as they may take up in memory their entries may have on the disk."""
_MODEL_BYTES = 700
"""What a model takes up without what it holds: the object, its fields and the set of those that were given."""
_SLOT_BYTES = 8
_MAPPING_BYTES = 100
_OTHER_BYTES = 32
_SMALL = frozenset({type(None), bool, int, float, datetime})
"""What all of it has in the slot, or shares, as far as this counts."""


class Hearer(Protocol):
    """A member of one group, by one agent."""

    def leave(self) -> None:
        """Take part in the group no more, soon."""


class HeardRoom:
    """Counts what members have heard, and has one leave its group where there is no room for more.

    Of the user whose goals have taken up most it is the one that has heard most, so that nobody's groups are left for what is said
    in those of others, who have more. It is not counted any more from then on.

    Args:
        most_bytes: How much room there is.
    """

    def __init__(self, most_bytes: int = MAX_HEARD_BYTES) -> None:
        self._most = most_bytes
        self._heard: dict[UserId, dict[Hearer, int]] = defaultdict(dict)
        self._users: dict[Hearer, UserId] = {}
        self._total = 0
        self._waiting = Counter[Hearer]()
        self._all_waiting = 0

    def lets_wait(self, hearer: Hearer, size_bytes: int) -> bool:
        """Count what has come for a member and waits to be applied, or say that there is no room for it beside what waits."""
        own = self._waiting[hearer]
        if own and (own + size_bytes) * _OF_ONE > _MOST_WAITING_BYTES:
            return False
        if self._all_waiting and self._all_waiting + size_bytes > _MOST_WAITING_BYTES:
            return False
        self._waiting[hearer] = own + size_bytes
        self._all_waiting += size_bytes
        return True

    def waits_no_more(self, hearer: Hearer, size_bytes: int | None = None) -> None:
        """Count no more what has waited, or with no size all of it."""
        size_bytes = self._waiting[hearer] if size_bytes is None else size_bytes
        self._all_waiting -= size_bytes
        self._waiting[hearer] -= size_bytes
        if not self._waiting[hearer]:
            del self._waiting[hearer]

    def take(self, hearer: Hearer, user: UserId, size_bytes: int) -> None:
        """Count what a member has heard in the goal of a user, which stays that user's."""
        of_user = self._heard[self._users.setdefault(hearer, user)]
        of_user[hearer] = of_user.get(hearer, 0) + size_bytes
        self._total += size_bytes
        while self._total > self._most:
            whose = max(self._heard, key=lambda one: sum(self._heard[one].values()))
            groups = self._heard[whose]
            most = max(groups, key=lambda one: groups[one])
            self.give_back(most)
            most.leave()

    def give_back(self, hearer: Hearer) -> None:
        """Count no more what a member has heard, who has forgotten it or does so soon."""
        user = self._users.pop(hearer, None)
        if user is not None:
            self._total -= self._heard[user].pop(hearer)
            if not self._heard[user]:
                del self._heard[user]


def size_of_entry(entry: Entry) -> int:
    """Estimate what an entry takes up: what happened, in memory, or its part of what all of it has on the disk, if that is more."""
    said = size_of(entry.event)
    return max(said, (said + len(encode_state(entry.state))) // _STORED_PARTS)


def size_of(value: object) -> int:
    """Estimate what something of the protocol takes up in memory, in bytes: a letter of a text takes up to four."""
    kind = type(value)
    if kind in _SMALL:
        return 0
    if kind is str:
        return sys.getsizeof(value)
    if isinstance(value, Model):
        return _MODEL_BYTES + _sizes_of(value.__dict__.values())
    if isinstance(value, tuple | frozenset):
        return _sizes_of(value)
    if isinstance(value, Mapping):
        return _MAPPING_BYTES + _sizes_of(value.keys()) + _sizes_of(value.values())
    return _OTHER_BYTES


def _sizes_of(values: Collection[object]) -> int:
    return _SLOT_BYTES * len(values) + sum([size_of(one) for one in values if one is not None])
