"""Who makes subscriptions and ends them without end is told by how lately its connections did something, and by what they have.

nats-server counts messages and no other commands. But each command about a subscription, one that it refuses too, renews when a
connection was active last; and whoever makes and ends thousands a second has another number of them each few milliseconds.

One looks at times that nobody foresees, within a window: who did `n` things in it is seen within `a` seconds of one with a
probability of `n * a / window` at most, however they were spread. So it is with some glances in a row, which last `a` seconds from
the first to the last, between which something changed. Whom that makes unlikely is seen so now and then, and not in one look after
the other.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ioa.ports.connections import SentTotals
from ioa_registry.servers import OfServers

WINDOW_SECONDS = 1.0
"""Within how many seconds the time of each look is left to chance."""
_NEAREST_SECONDS = 0.001
"""Nobody is taken to have been active less long ago: neither clocks nor lists are as exact."""
_OF_A_MESSAGE = 2
"""How many things somebody may have done for each message that he sent: a subscription is made for it, or ended. Being sent one is
one."""
_BESIDES, _BESIDES_OF_A_SERVICE = 2, 20
"""How many he may do in a window besides."""
_MOST_CHANGED, _CHANGED = 2_000, 20
"""By how many subscriptions he may have more, or fewer, than in the look before, at once and in each look. Who makes many, or ends
them, has other numbers of them then; who does both has some more and some fewer each time, and so has used this up soon."""
_UNLIKELY = 0.25
"""With which probability at most somebody who does what he may is seen as who churns is, in a look, in either way. The server takes
64 kB at once, and does as many of the dearest commands, which go through several accounts, in a sixth of a second."""
LOOKS, _OF_ANOTHER, _ABSENT = 25, 2, 1
"""In how many looks more than in others somebody has to be seen so; of these each counts as two, and as one where he was not there.
Who does just what he may in both ways is named wrongly in one look of 100,000, who does two thirds of it in one of 100 billion."""
_LEAST_APART = 0.5
_GLANCED_SECONDS = 0.1
"""How long glances may take together; where the server is busy the last ones come later."""


@dataclass
class _Holder:
    """In how many looks more than in others somebody was seen as who churns is, and how much has changed of late."""

    against: int = 0
    changed: float = 0.0


@dataclass
class _Glances:
    """What was seen in a row: of each connection each time, and how many seconds that took."""

    seen: dict[int, list[SentTotals]] = field(default_factory=dict)
    began: float = 0.0
    took: float = 0.0

    def changed(self) -> set[str]:
        """Return whose connections had other numbers of subscriptions without sending, or being sent, a message meanwhile."""
        return {
            seen[0].key
            for seen in self.seen.values()
            if len({one.subscriptions for one in seen}) > 1 and len({(one.messages, one.received) for one in seen}) == 1
        }


@dataclass
class _Server:
    holders: dict[str, _Holder] = field(default_factory=dict)
    subscriptions: Mapping[int, int] = field(default_factory=dict)
    """Of each connection in the look before."""
    glances: _Glances | None = None
    """Those since then."""
    looked_at: float = -math.inf


@dataclass
class _Look:
    """What is seen of somebody in a look; `flickered` is how many seconds glances took in which his subscriptions changed."""

    ago: float = math.inf
    sent: int = 0
    received: int = 0
    changed: int = 0
    is_service: bool = False
    flickered: float = math.inf


class ChurnJudge:
    """Judges by a look at all connections of a server each second or so, and by glances after it."""

    def __init__(self) -> None:
        self._servers = OfServers[_Server]()

    def glanced(self, server: str, connections: Sequence[SentTotals], at_seconds: float) -> None:
        """Take in what the connections of a server that was looked at had, which were active last, and when by its clock."""
        at = self._servers.get(server)
        if at is None:
            return
        if at.glances is None:
            at.glances = _Glances(began=at_seconds)
        if at_seconds > at.glances.began + _GLANCED_SECONDS:
            return
        at.glances.took = at_seconds - at.glances.began
        for one in connections:
            at.glances.seen.setdefault(one.connection.number, []).append(one)

    def looked(self, server: str, connections: Sequence[SentTotals], now: float) -> frozenset[str]:
        """Take in what is new of each connection; return whose keys churn from now on. Of looks in a row one counts.

        They come at once where they had waited, for a server that stalls or was away, after which everybody was active just now.
        """
        at = self._servers.get(server) or _Server()
        self._servers.put(server, at)
        glances, at.glances, since, at.looked_at = at.glances or _Glances(), None, now - at.looked_at, now
        if since < _LEAST_APART:
            return frozenset()
        looks = defaultdict[str, _Look](_Look)
        for one in connections:
            look, before = looks[one.key], at.subscriptions.get(one.connection.number)
            look.ago = min(look.ago, one.active_ago)
            look.sent += one.messages
            look.received += one.received
            look.changed += abs(one.subscriptions - (before or 0)) + (before is None)
            look.is_service |= one.is_service
        for key in glances.changed() & looks.keys():
            looks[key].flickered = glances.took
        at.subscriptions = {one.connection.number: one.subscriptions for one in connections}
        for key in at.holders.keys() | looks.keys():
            _judge(at.holders.setdefault(key, _Holder()), looks.get(key))
        found = frozenset(key for key, one in at.holders.items() if one.against >= LOOKS)
        at.holders = {key: one for key, one in at.holders.items() if key not in found and (one.against > 0 or one.changed > 0)}
        return found


def _judge(holder: _Holder, look: _Look | None) -> None:
    """Take in a look at somebody, or that he was not there."""
    holder.changed = max(0.0, holder.changed - _CHANGED)
    if look is None:
        holder.against = max(0, holder.against - _ABSENT)
        return
    changed = min(look.changed, _MOST_CHANGED - holder.changed)
    holder.changed += changed
    things = (_BESIDES_OF_A_SERVICE if look.is_service else _BESIDES) + changed + _OF_A_MESSAGE * look.sent
    was_active = (things + look.received) * max(_NEAREST_SECONDS, look.ago) / WINDOW_SECONDS
    has_changed = things * look.flickered / WINDOW_SECONDS
    is_unlikely = min(was_active, has_changed) <= _UNLIKELY
    holder.against = holder.against + 1 if is_unlikely else max(0, holder.against - _OF_ANOTHER)
