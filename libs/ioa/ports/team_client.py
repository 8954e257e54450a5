"""What users ask about named teams."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from ioa.protocol.named_teams import NamedTeam, TeamReference, TeamRow
from ioa.protocol.team import TeamSpec


class TeamClient(Protocol):
    """Named teams as their users see them."""

    async def put_team(self, team: TeamSpec) -> NamedTeam:
        """Keep a team under its own name, as the next version of it. What is the newest version already is put once.

        An admin puts a version of anybody's team, which stays that user's.

        Raises:
            InvalidInputError: Its name cannot be one.
            ForbiddenError: The name is another user's.
            OverQuotaError: The user has as many teams as he may.
        """

    async def team(self, reference: TeamReference) -> NamedTeam:
        """Read a version of a team.

        Raises:
            NotFoundError: There is none; it names what may have been meant.
        """

    async def teams(self) -> Sequence[TeamRow]:
        """List all teams by name, each with its newest version."""
