"""Liveness of agents, computed from messages and the times at which the server stored them.

No clock of a process is used. The judge folds the messages of a bucket: renewals, orderly departures and heartbeats of the
registry, each with its storage time. So every process that follows the bucket computes the same result, and a process that was
suspended does not count its own absence.

The rules:

- An agent is lost if it was silent for a whole lease while others, or only the registry, were heard.
- A longer pause of all messages, or a time that goes back, is an *interruption*: the system was down, or its clock was set. All
  online agents count as heard at its end.
- If most of those online fall silent together, they get one more lease, since a common cause is more likely than
  many failures (decision 4).
- An agent that leaves is offline at once, and lost a lease later, so a restart does not affect its groups.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum

from ioa.protocol.ids import AgentId


class Standing(StrEnum):
    """Standing of an agent.

    `AWAY` is offline and not lost: the agent left recently, or the reason of its silence is unknown to this judge.
    """

    ONLINE = "online"
    AWAY = "away"
    LOST = "lost"


_NEVER = datetime.max.replace(tzinfo=UTC)


@dataclass(frozen=True)
class Sign:
    """The last message of an agent, a renewal or a departure, with its storage time."""

    at: datetime
    leaves: bool = False


@dataclass(frozen=True)
class StandingChange:
    """A change of an agent's standing."""

    agent_id: AgentId
    before: Standing
    after: Standing


class LeaseJudge:
    """Fold messages, in the order of their storage, into the standing of each agent.

    The cost of an event does not depend on the number of agents, except for interruptions.

    Args:
        lease: Maximum silence of an agent while others are heard. A pause of half of it in all messages is an interruption.
    """

    def __init__(self, lease: timedelta) -> None:
        self._lease = lease
        self._pause = lease / 2
        self._now: datetime | None = None
        self._seen: dict[AgentId, datetime] = {}
        # Each is ordered by time: when the agent was last heard, or since when it has another lease.
        self._fresh: OrderedDict[AgentId, datetime] = OrderedDict()
        self._silent: OrderedDict[AgentId, datetime] = OrderedDict()
        self._spared: OrderedDict[AgentId, datetime] = OrderedDict()
        self._away: OrderedDict[AgentId, datetime] = OrderedDict()

    def standing(self, agent_id: AgentId) -> Standing:
        """Return the standing of an agent; an unknown agent is lost."""
        if agent_id in self._fresh or agent_id in self._silent or agent_id in self._spared:
            return Standing.ONLINE
        return Standing.AWAY if agent_id in self._away else Standing.LOST

    def silence(self, agent_id: AgentId) -> timedelta | None:
        """Return the time between the last message of an agent and the newest event; None if it was never heard."""
        seen = self._seen.get(agent_id)
        return None if seen is None or self._now is None else self._now - seen

    def beat(self, at: datetime) -> tuple[StandingChange, ...]:
        """Process a heartbeat of the registry."""
        return tuple(self._advance(at))

    def hear(self, agent_id: AgentId, sign: Sign) -> tuple[StandingChange, ...]:
        """Process a message of an agent, which is the newest event for all agents."""
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
        """Process the last message of each agent after an interruption of the view itself, such as its start.

        Earlier messages are unknown, so silence proves nothing: an online agent remains online and has a whole lease from `newest`,
        the time of the newest event. Another agent is online if it was heard less than a lease before `newest`; an unknown agent is
        away for a lease.
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
        """Advance the time to `at`, the time of an event, and return the agents that are lost by it."""
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
        """Count all agents as heard at `at`, or at the next event, which will be an interruption."""
        self._now = at
        when = at or _NEVER
        self._fresh = OrderedDict.fromkeys(online, when)
        self._away = OrderedDict.fromkeys(away, when)
        self._silent, self._spared = OrderedDict(), OrderedDict()

    def _since(self, before: Mapping[AgentId, Standing]) -> list[StandingChange]:
        after = {agent_id: self.standing(agent_id) for agent_id in before}
        return [StandingChange(one, old, after[one]) for one, old in before.items() if after[one] is not old]


def _taken_until(places: OrderedDict[AgentId, datetime], until: datetime) -> list[tuple[AgentId, datetime]]:
    """Remove and return the agents with a time up to `until`."""
    taken: list[tuple[AgentId, datetime]] = []
    while places and (first := next(iter(places.items())))[1] <= until:
        places.popitem(last=False)
        taken.append(first)
    return taken
