"""Where named teams are kept."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from ioa.protocol.named_teams import NamedTeam, TeamName, TeamRow


class TeamStore(Protocol):
    """Named teams, each version under a number of its own. A version never changes.

    Every method raises `UnavailableError` when the store is out of reach.
    """

    async def newest(self, name: TeamName) -> NamedTeam | None:
        """Read the newest version of a team; what was put just now is found."""

    async def version(self, name: TeamName, version: int) -> NamedTeam | None:
        """Read one version of a team."""

    async def put(self, team: NamedTeam) -> bool:
        """Keep a version, if it is the one behind the newest; False if somebody else was first."""

    async def rows(self) -> Sequence[TeamRow]:
        """List every version that is kept, of all teams, in any order."""

    async def forget(self, row: TeamRow) -> None:
        """Remove a version."""
