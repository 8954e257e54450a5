"""Named teams in the bucket `IOA_TEAMS`, one key per version: `NAME.VERSION.USER`, so that keys alone list the versions."""

from __future__ import annotations

from collections.abc import Sequence

from nats.aio.client import Client

from ioa.adapters.nats.stores.records import Records
from ioa.adapters.nats.streams.topology import TEAMS
from ioa.protocol.ids import UserId
from ioa.protocol.teams.stored_teams import NamedTeam, TeamName, TeamRow


class NatsTeams:
    """Named teams. A version never changes."""

    def __init__(self, client: Client) -> None:
        self._teams = Records(client, TEAMS, NamedTeam)

    async def newest(self, name: TeamName) -> NamedTeam | None:
        """Return the newest version of a team."""
        return await self._teams.find(f"{name}.*.*")

    async def version(self, name: TeamName, version: int) -> NamedTeam | None:
        """Return one version of a team."""
        return await self._teams.find(f"{name}.{version}.*")

    async def put(self, team: NamedTeam) -> bool:
        """Store a version if it directly follows the newest one, of any user."""
        versions = f"{team.name}.*.*"
        newest, last = await self._teams.read(versions)
        if team.version != (0 if newest is None else newest.version) + 1:
            return False
        return await self._teams.put_onto(f"{team.name}.{team.version}.{team.user}", team, last=last, last_of=versions) is not None

    async def rows(self) -> Sequence[TeamRow]:
        """List all versions."""
        keys = [subject.split(".")[-3:] for subject in sorted(await self._teams.stream.subject_counts())]
        return [TeamRow(name=TeamName(name), version=int(version), user=UserId(user)) for name, version, user in keys]

    async def forget(self, row: TeamRow) -> None:
        """Remove a version."""
        await self._teams.erase(f"{row.name}.{row.version}.{row.user}")
