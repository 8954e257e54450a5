"""Work that was just handed to an agent, and that its lease cannot tell of yet.

A load is as old as the last renewal of a lease. Of a hundred goals between two renewals all would be sent to the replica that was
idle at the first; so whoever was named first for a purpose counts as busier by one task until its next renewal has come for sure.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from ioa.ports.clock import Clock
from ioa.protocol.ids import AgentId


class RecentNominations:
    """The purposes for which each agent was named lately. Each replica of discovery knows of its own answers only.

    Args:
        clock: Tells what was lately.
        lasts: How long one counts: the time between two renewals of a lease.
    """

    def __init__(self, clock: Clock, lasts: timedelta) -> None:
        self._clock = clock
        self._lasts = lasts
        self._until: dict[AgentId, dict[str, datetime]] = {}

    def add(self, agent_id: AgentId, purpose: str) -> None:
        """Note that an agent was named for a purpose."""
        self._current(agent_id)
        self._until.setdefault(agent_id, {})[purpose] = self._clock.now() + self._lasts

    def count(self, agent_id: AgentId, *, but_for: str) -> int:
        """Count the other purposes an agent was named for, so that the same search again finds what it found."""
        current = self._current(agent_id)
        return len(current) - (but_for in current)

    def _current(self, agent_id: AgentId) -> dict[str, datetime]:
        """Return what still counts; the rest is forgotten."""
        noted = self._until.get(agent_id)
        if not noted:
            return {}
        now = self._clock.now()
        current = {purpose: until for purpose, until in noted.items() if until > now}
        if current:
            self._until[agent_id] = current
        else:
            del self._until[agent_id]
        return current
