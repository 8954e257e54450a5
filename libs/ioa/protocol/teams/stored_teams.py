"""Stored teams: their names, versions and requests. A version never changes.

A goal names a team as `NAME`, for the newest version, or as `NAME@VERSION`.
"""

from __future__ import annotations

import re
from typing import Annotated, NamedTuple, NewType, Self

from pydantic import AfterValidator, Field

from ioa.errors import InvalidInputError
from ioa.protocol.ids import IS_TOKEN, UserIdField, check_token
from ioa.protocol.model import Instruction, Model, Time
from ioa.protocol.teams.team_file import TeamField

TeamName = NewType("TeamName", str)
TeamNameField = Annotated[TeamName, IS_TOKEN]
VersionNumber = Annotated[int, Field(ge=1, le=2**31)]

_REFERENCE = re.compile(r"([^@]*)(?:@([1-9][0-9]{0,8}))?")


class TeamReference(NamedTuple):
    """The name and version of a team; without a version, the newest one."""

    name: TeamName
    version: int | None

    @classmethod
    def parse(cls, written: str) -> Self:
        """Read a reference.

        Raises:
            InvalidInputError: The text names no team.
        """
        found = _REFERENCE.fullmatch(written)
        if found is None:
            raise InvalidInputError(f"{written[:80]!r} names no team: write NAME, or NAME@VERSION such as debate@3.")
        return cls(team_name(found[1]), None if found[2] is None else int(found[2]))

    def means(self, other: TeamReference) -> bool:
        """Whether it names another reference: by the same text, or by its name alone."""
        return self.name == other.name and self.version in (None, other.version)

    def __str__(self) -> str:
        return self.name if self.version is None else f"{self.name}@{self.version}"


def team_name(written: str) -> TeamName:
    """Check the name of a team.

    Raises:
        InvalidInputError: The text is not a valid name.
    """
    try:
        return TeamName(check_token(written))
    except ValueError as error:
        raise InvalidInputError(f"This is not a valid name of a team: {error}.") from None


ReferenceField = Annotated[str, Field(max_length=80), AfterValidator(lambda written: str(TeamReference.parse(written)))]
"""A team by its name, or by name and version."""


class NamedTeam(Model):
    """One version of a team.

    Attributes:
        user: The user that stored the first version.
        at: Time at which this version was stored.
    """

    name: TeamNameField
    version: VersionNumber
    user: UserIdField
    at: Time
    team: TeamField

    @property
    def reference(self) -> TeamReference:
        """The reference to this version."""
        return TeamReference(self.name, self.version)


class PutTeam(Instruction):
    """Store a team under its own name, as the next version. A team that equals the newest version is not stored again."""

    team: TeamField


class GetTeam(Model):
    """Read a version of a team; None is the newest one."""

    name: TeamNameField
    version: VersionNumber | None = None


class ListTeams(Model):
    """List the teams."""


class TeamRow(Model):
    """The newest version of a team, in a list."""

    name: TeamNameField
    version: VersionNumber
    user: UserIdField


class TeamList(Model):
    """All teams, by name."""

    teams: tuple[TeamRow, ...]
