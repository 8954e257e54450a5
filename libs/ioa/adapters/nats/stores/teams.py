"""Named teams in the bucket `IOA_TEAMS`, a key for each version: `NAME.VERSION.USER`, so that the keys alone tell what there is."""

from __future__ import annotations

from collections.abc import Sequence

from nats.aio.client import Client

from ioa.adapters.nats.streams.compare_and_set import erase, last_message, publish_onto, stream_of, subject_of
from ioa.adapters.nats.streams.stream_names import subjects_of
from ioa.adapters.nats.streams.topology import TEAMS
from ioa.adapters.nats.wire.translated_errors import unavailable_unless_answered
from ioa.protocol.codec import decode, encode
from ioa.protocol.ids import UserId
from ioa.protocol.named_teams import NamedTeam, TeamName, TeamRow

_STREAM = stream_of(TEAMS)
_WHAT = "The bucket of teams"


class NatsTeams:
    """Named teams, each version under its own number. A version never changes. Every read asks the stream's leader."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._js = client.jetstream()

    async def newest(self, name: TeamName) -> NamedTeam | None:
        """Read the newest version of a team, which was put last."""
        return (await self._last(f"{name}.*.*"))[1]

    async def version(self, name: TeamName, version: int) -> NamedTeam | None:
        """Read one version of a team."""
        return (await self._last(f"{name}.{version}.*"))[1]

    async def put(self, team: NamedTeam) -> bool:
        """Keep a version, onto the one before it of whichever user."""
        last, newest = await self._last(f"{team.name}.*.*")
        if team.version != (0 if newest is None else newest.version) + 1:
            return False
        key = f"{team.name}.{team.version}.{team.user}"
        with unavailable_unless_answered(_WHAT):
            every_version = subject_of(TEAMS, f"{team.name}.*.*")
            return (
                await publish_onto(self._js, _STREAM, subject_of(TEAMS, key), encode(team), last=last, last_of=every_version)
                is not None
            )

    async def rows(self) -> Sequence[TeamRow]:
        """List every version, by the keys."""
        found = [subject async for page in subjects_of(self._client, _STREAM, subject_of(TEAMS, "*.*.*")) for subject in page]
        keys = [subject.split(".")[-3:] for subject in found]
        return [TeamRow(name=TeamName(name), version=int(version), user=UserId(user)) for name, version, user in keys]

    async def forget(self, row: TeamRow) -> None:
        """Remove a version."""
        with unavailable_unless_answered(_WHAT):
            await erase(self._js, TEAMS, f"{row.name}.{row.version}.{row.user}")

    async def _last(self, key: str) -> tuple[int, NamedTeam | None]:
        with unavailable_unless_answered(_WHAT):
            found = await last_message(self._js, _STREAM, subject_of(TEAMS, key))
        return (0, None) if found is None else (found.seq or 0, decode(NamedTeam, found.data or b""))
