"""Named teams: storage of versions, and lookup by name.

The user who stores the first version owns the name. A version never changes, and the record of a goal contains its team, so a later
version changes no goal.
"""

from __future__ import annotations

from ioa.adapters.nats.stores.team_store import NatsTeams
from ioa.errors import (
    ForbiddenError,
    NotFoundError,
    OverQuotaError,
    PayloadTooLargeError,
    UnavailableError,
)
from ioa.ports.clock import Clock
from ioa.protocol.codec import encode
from ioa.protocol.goal_order import MAX_GOAL_BYTES
from ioa.protocol.ids import UserId
from ioa.protocol.policy_parts import nearest
from ioa.protocol.teams.stored_teams import (
    GetTeam,
    ListTeams,
    NamedTeam,
    PutTeam,
    TeamList,
    TeamReference,
    TeamRow,
    team_name,
)
from ioa.runtime.store_share import StoreShare

MAX_NAMES = 100
"""Maximum teams per user."""
VERSIONS_KEPT = 50
"""Number of newest versions that are kept of a team."""
_TRIES = 5


class Teams:
    """Requests for named teams.

    Args:
        store: Stored versions.
        clock: Time of new versions.
        share: Rejects new teams while the store is full.
    """

    def __init__(self, store: NatsTeams, clock: Clock, share: StoreShare) -> None:
        self._store = store
        self._clock = clock
        self._share = share

    async def put(self, user: UserId, request: PutTeam) -> NamedTeam:
        """Store a team as the next version of its name.

        Raises:
            InvalidInputError: The name is invalid.
            PayloadTooLargeError: The team is larger than a goal may be.
            ForbiddenError: The name is another user's.
            OverQuotaError: The user has the maximum number of teams.
            StoreFullError: The store is full.
            UnavailableError: Concurrent writers of the same name won each attempt, or the store does not answer.
        """
        name = team_name(request.team.team)
        for _ in range(_TRIES):
            newest = await self._store.newest(name)
            if newest is None:
                names = {row.name for row in await self._store.rows() if row.user == user}
                if len(names) >= MAX_NAMES:
                    raise OverQuotaError(
                        f"{user} has {len(names)} teams, the maximum.", hint="Put a new version of an existing team."
                    )
            elif newest.user != user:
                raise ForbiddenError(f"The team {name} is {newest.user}'s.", hint="Put yours under a name of its own.")
            elif newest.team == request.team:
                return newest
            self._share.check()
            version = 1 if newest is None else newest.version + 1
            put = NamedTeam(name=name, version=version, user=user, at=self._clock.now(), team=request.team)
            size = len(encode(put))
            if size > MAX_GOAL_BYTES:
                raise PayloadTooLargeError(f"The team has {size:,} bytes; {MAX_GOAL_BYTES:,} are the most.")
            if await self._store.put(put):
                if version > VERSIONS_KEPT:
                    await self._store.forget(TeamRow(name=name, version=version - VERSIONS_KEPT, user=user))
                return put
        raise UnavailableError(f"The team {name} is being put by others.")

    async def get(self, request: GetTeam) -> NamedTeam:
        """Read a version of a team; see `find`."""
        return await self.find(TeamReference(request.name, request.version))

    async def find(self, reference: TeamReference) -> NamedTeam:
        """Read the named version of a team, or the newest one.

        Raises:
            NotFoundError: The version does not exist. The error names the versions, or a similar team.
        """
        name, version = reference
        found = await (self._store.newest(name) if version is None else self._store.version(name, version))
        if found is not None:
            return found
        rows = await self._store.rows()
        versions = sorted(row.version for row in rows if row.name == name)
        if versions:
            raise NotFoundError(f"The team {name} has no version {version}; it has {versions[0]} to {versions[-1]}.")
        hint = "`ioa team show` lists them; `ioa team put FILE` adds one."
        raise NotFoundError(f"No team is called {name}{nearest(name, sorted({row.name for row in rows}))}.", hint=hint)

    async def listed(self, _request: ListTeams) -> TeamList:
        """List all teams by name, each with its newest version."""
        newest = {row.name: row for row in sorted(await self._store.rows(), key=lambda row: row.version)}
        return TeamList(teams=tuple(sorted(newest.values(), key=lambda row: row.name)))
