"""Who is alive, judged by what was heard and when the server stored it.

A lease is no time that runs out on somebody's clock. The judge folds the messages of one bucket: renewals, orderly departures and
the registry's own heartbeats, each with the time at which the server stored it. Nobody else's clock is asked, so every process that
follows the bucket comes to the same judgement, and one that was frozen itself judges nobody by its own absence.

The rules:

- An agent is lost when it was not heard for a whole lease during which others were, be it only the registry's heartbeat.
- A longer pause in everything that is heard, or a time that goes back, is an *interruption*: the system was away, or its clock was
  set. Whoever was online counts as heard at its end.
- If most of those online fall silent together, they get one more lease, since a common cause is more likely than
  many failures (decision 4).
- Who leaves in good order is offline at once, and lost a lease later: a restart costs its groups nothing.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum

from ioa.protocol.ids import AgentId


class Standing(StrEnum):
    """What is known of an agent.

    `AWAY` is offline and not lost: it left in good order a moment ago, or its silence began before this judge could tell why.
    """

    ONLINE = "online"
    AWAY = "away"
    LOST = "lost"


_NEVER = datetime.max.replace(tzinfo=UTC)


@dataclass(frozen=True)
class Sign:
    """The last thing heard of an agent, and when the server stored it: that it is there, or that it leaves."""

    at: datetime
    leaves: bool = False


@dataclass(frozen=True)
class StandingChange:
    """An agent's standing has changed."""

    agent_id: AgentId
    before: Standing
    after: Standing


class LeaseJudge:
    """Fold what is heard, in the order in which it was stored, into who is online, away and lost.

    Each event costs the same however many agents there are, interruptions apart.

    Args:
        lease: How long an agent may be silent while others are heard. A pause of half of it in everything is an interruption.
    """

    def __init__(self, lease: timedelta) -> None:
        self._lease = lease
        self._pause = lease / 2
        self._now: datetime | None = None
        self._seen: dict[AgentId, datetime] = {}
        # All are in the order of their times: when the agent was last heard, or since when it is spared.
        self._fresh: OrderedDict[AgentId, datetime] = OrderedDict()
        self._silent: OrderedDict[AgentId, datetime] = OrderedDict()
        self._spared: OrderedDict[AgentId, datetime] = OrderedDict()
        self._away: OrderedDict[AgentId, datetime] = OrderedDict()

    def standing(self, agent_id: AgentId) -> Standing:
        """Return what is known of an agent; one that was never heard of is lost."""
        if agent_id in self._fresh or agent_id in self._silent or agent_id in self._spared:
            return Standing.ONLINE
        return Standing.AWAY if agent_id in self._away else Standing.LOST

    def silence(self, agent_id: AgentId) -> timedelta | None:
        """How long before the newest event the agent was last heard of; None if it never was."""
        seen = self._seen.get(agent_id)
        return None if seen is None or self._now is None else self._now - seen

    def beat(self, at: datetime) -> tuple[StandingChange, ...]:
        """Take in that the registry was up at `at`."""
        return tuple(self._advance(at))

    def hear(self, agent_id: AgentId, sign: Sign) -> tuple[StandingChange, ...]:
        """Take in a sign of an agent. It is the newest evidence that the agent, too, is judged by."""
        before = self.standing(agent_id)
        for places in (self._fresh, self._silent, self._spared, self._away):
            places.pop(agent_id, None)
        self._seen[agent_id] = sign.at
        if not sign.leaves:
            self._fresh[agent_id] = sign.at
        elif before is not Standing.LOST:
            self._away[agent_id] = sign.at
        changes = self._advance(sign.at)
        return (*changes, *self._since({agent_id: before}))

    def restart(self, signs: Mapping[AgentId, Sign], newest: datetime | None) -> tuple[StandingChange, ...]:
        """Take in the last sign of everybody after an interruption of the view itself, such as its start.

        What was heard in between is gone, so that silence proves nothing yet: who was online stays so, and has a whole lease from
        `newest`, the time of the newest event. Of those that were not, who was heard less than a lease before it is online; who was
        not known at all is away until a lease has passed.
        """
        known = (*self._fresh, *self._silent, *self._spared)
        before = {agent_id: self.standing(agent_id) for agent_id in (*self._seen, *signs)}
        online, away = dict.fromkeys(known), dict.fromkeys(self._away)
        for agent_id, sign in signs.items():
            is_first = agent_id not in self._seen
            if not is_first and self._seen[agent_id] == sign.at:
                continue
            self._seen[agent_id] = sign.at
            if sign.leaves:
                if agent_id in online or is_first:
                    online.pop(agent_id, None)
                    away[agent_id] = None
            elif newest is not None and newest - sign.at < self._lease:
                away.pop(agent_id, None)
                online[agent_id] = None
            elif is_first:
                away[agent_id] = None
        for agent_id in [one for one in self._seen if one not in signs and one not in online and one not in away]:
            del self._seen[agent_id]
        self._begin_again(online, away, newest)
        return tuple(self._since(before))

    def _advance(self, at: datetime) -> list[StandingChange]:
        """Let time pass until `at`, the time of an event, and say who is lost by it."""
        earlier, self._now = self._now, at
        if earlier is None or not timedelta(0) <= at - earlier <= self._pause:
            self._seen.update({agent_id: at for agent_id, seen in self._seen.items() if seen > at})
            self._begin_again((*self._fresh, *self._silent, *self._spared), tuple(self._away), at)
            return []
        for agent_id, heard in _taken_until(self._fresh, at - self._pause):
            self._silent[agent_id] = heard
        lapsed = [agent_id for agent_id, _ in _taken_until(self._silent, at - self._lease)]
        lost = [agent_id for agent_id, _ in _taken_until(self._spared, at - self._lease)]
        silent = len(lapsed) + len(lost) + len(self._silent) + len(self._spared)
        if silent > 1 and 2 * silent > silent + len(self._fresh):
            self._spared.update(dict.fromkeys(lapsed, at))
        else:
            lost += lapsed
        changes = [StandingChange(agent_id, Standing.ONLINE, Standing.LOST) for agent_id in lost]
        gone = [agent_id for agent_id, _ in _taken_until(self._away, at - self._lease)]
        return changes + [StandingChange(agent_id, Standing.AWAY, Standing.LOST) for agent_id in gone]

    def _begin_again(self, online: Iterable[AgentId], away: Iterable[AgentId], at: datetime | None) -> None:
        """Count everybody as heard at `at`; without a time, at that of the next event, which will be an interruption."""
        self._now = at
        when = at or _NEVER
        self._fresh = OrderedDict.fromkeys(online, when)
        self._away = OrderedDict.fromkeys(away, when)
        self._silent, self._spared = OrderedDict(), OrderedDict()

    def _since(self, before: Mapping[AgentId, Standing]) -> list[StandingChange]:
        after = {agent_id: self.standing(agent_id) for agent_id in before}
        return [StandingChange(one, old, after[one]) for one, old in before.items() if after[one] is not old]


def _taken_until(places: OrderedDict[AgentId, datetime], until: datetime) -> list[tuple[AgentId, datetime]]:
    """Take out those that stand at `until` or before."""
    taken: list[tuple[AgentId, datetime]] = []
    while places and (first := next(iter(places.items())))[1] <= until:
        places.popitem(last=False)
        taken.append(first)
    return taken
