"""Teams that are kept under a name, in versions that never change: what is asked of group setup, and what it answers.

A goal names one as `NAME`, the newest version, or as `NAME@VERSION`.
"""

from __future__ import annotations

import re
from typing import Annotated, NamedTuple, NewType, Self

from pydantic import AfterValidator, Field

from ioa.errors import InvalidInputError
from ioa.protocol.ids import UserIdField, check_token
from ioa.protocol.model import Instruction, Model, Time
from ioa.protocol.team import TeamField

TeamName = NewType("TeamName", str)
TeamNameField = Annotated[TeamName, AfterValidator(check_token)]
VersionNumber = Annotated[int, Field(ge=1, le=2**31)]

_REFERENCE = re.compile(r"([^@]*)(?:@([1-9][0-9]{0,8}))?")


class TeamReference(NamedTuple):
    """Which team is meant: its name, and its version; None is the newest one."""

    name: TeamName
    version: int | None

    @classmethod
    def parse(cls, written: str) -> Self:
        """Read what was written.

        Raises:
            InvalidInputError: It names no team.
        """
        found = _REFERENCE.fullmatch(written)
        if found is None:
            raise InvalidInputError(f"{written[:80]!r} names no team: write NAME, or NAME@VERSION such as debate@3.")
        return cls(team_name(found[1]), None if found[2] is None else int(found[2]))

    def means(self, other: TeamReference) -> bool:
        """Whether it may stand for another one: the same, or its name alone."""
        return self.name == other.name and self.version in (None, other.version)

    def __str__(self) -> str:
        return self.name if self.version is None else f"{self.name}@{self.version}"


def team_name(written: str) -> TeamName:
    """Check what a team is to be called.

    Raises:
        InvalidInputError: It is no name.
    """
    try:
        return TeamName(check_token(written))
    except ValueError as error:
        raise InvalidInputError(f"No team can be called so: {error}.") from None


def check_reference(written: str) -> str:
    """Return what was written if it names a team.

    Raises:
        ValueError: It does not.
    """
    try:
        return str(TeamReference.parse(written))
    except InvalidInputError as error:
        raise ValueError(error.message.rstrip(".")) from None


ReferenceField = Annotated[str, Field(max_length=80), AfterValidator(check_reference)]
"""A team by its name, or by name and version."""


class NamedTeam(Model):
    """One version of a team.

    Attributes:
        user: Whose it is: who has put the first version.
        at: When this version was put.
    """

    name: TeamNameField
    version: VersionNumber
    user: UserIdField
    at: Time
    team: TeamField

    @property
    def reference(self) -> TeamReference:
        """How it is named."""
        return TeamReference(self.name, self.version)


class PutTeam(Instruction):
    """Keep a team under its own name, as the next version. What is the newest version already is put once."""

    team: TeamField


class GetTeam(Model):
    """Ask for a version of a team; None is the newest one."""

    name: TeamNameField
    version: VersionNumber | None = None


class ListTeams(Model):
    """Ask which teams there are."""


class TeamRow(Model):
    """A team as lists show it: its newest version."""

    name: TeamNameField
    version: VersionNumber
    user: UserIdField


class TeamList(Model):
    """All teams, by name."""

    teams: tuple[TeamRow, ...]
