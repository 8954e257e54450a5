"""Named teams: listing, showing and putting them."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BeforeValidator, Field, RootModel
from starlette.responses import Response

from ioa.errors import InvalidInputError
from ioa.protocol.ids import UserId
from ioa.protocol.model import Instruction, Model, Time
from ioa.protocol.named_teams import NamedTeam, TeamList, TeamName, TeamReference, TeamRow, VersionNumber, team_name
from ioa.protocol.team import TeamSpec, document_of, team_of
from ioa_gateway.calls import ApiCall, document, read_object


class TeamQuery(Instruction):
    """Which version of a team."""

    version: Annotated[VersionNumber, Field(description="which one, if not the newest")] | None = None


class TeamBody(RootModel[Annotated[TeamSpec, BeforeValidator(team_of, json_schema_input_type=dict[str, Any])]]):
    """A team in the form of a team file, as JSON."""


class TeamDocument(Model):
    """One version of a team; `team` has the form of a team file."""

    name: TeamName
    version: int
    user: UserId
    at: Time
    team: dict[str, Any]

    @classmethod
    def of(cls, named: NamedTeam) -> TeamDocument:
        """Describe a team."""
        return cls(name=named.name, version=named.version, user=named.user, at=named.at, team=document_of(named.team))


def read_team(data: bytes) -> TeamBody:
    """Parse a team.

    Raises:
        InvalidInputError: The body is not a team.
    """
    return TeamBody.model_validate(read_object(data))


async def list_teams(call: ApiCall) -> Response:
    """List teams."""
    return document(TeamList(teams=tuple(await call.client.teams())))


async def show(call: ApiCall, query: TeamQuery) -> Response:
    """Show a team."""
    reference = TeamReference(team_name(call.path["name"]), query.version)
    return document(TeamDocument.of(await call.client.team(str(reference))))


async def put(call: ApiCall, body: TeamBody) -> Response:
    """Put a team under the name of the path, which is its own."""
    team = body.root
    if team.team != call.path["name"]:
        raise InvalidInputError(f"The team is called {team.team!r}, and is to be put as {call.path['name']!r}: give it one name.")
    put = await call.client.put_team(team)
    return document(TeamRow(name=put.name, version=put.version, user=put.user))
