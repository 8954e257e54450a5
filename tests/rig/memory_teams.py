"""Named teams in memory."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from ioa.adapters.nats.stores.team_store import NatsTeams
from ioa.protocol.teams.stored_teams import NamedTeam, TeamName, TeamRow


class MemoryTeams(NatsTeams):
    """Named teams in a dictionary."""

    def __init__(self) -> None:
        self._kept: defaultdict[TeamName, dict[int, NamedTeam]] = defaultdict(dict)

    async def newest(self, name: TeamName) -> NamedTeam | None:
        """Read the newest version of a team."""
        kept = self._kept[name]
        return kept[max(kept)] if kept else None

    async def version(self, name: TeamName, version: int) -> NamedTeam | None:
        """Read one version of a team."""
        return self._kept[name].get(version)

    async def put(self, team: NamedTeam) -> bool:
        """Keep a version, if it is the next one."""
        kept = self._kept[team.name]
        if team.version != max(kept, default=0) + 1:
            return False
        kept[team.version] = team
        return True

    async def rows(self) -> Sequence[TeamRow]:
        """List every version."""
        return [TeamRow(name=one.name, version=one.version, user=one.user) for kept in self._kept.values() for one in kept.values()]

    async def forget(self, row: TeamRow) -> None:
        """Remove a version."""
        self._kept[row.name].pop(row.version, None)
