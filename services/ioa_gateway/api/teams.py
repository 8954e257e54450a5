"""Routes of named teams: list, show and put."""

from __future__ import annotations

from typing import Annotated, Any, Self

from fastapi import APIRouter, Body, Query

from ioa.errors import InvalidInputError
from ioa.protocol.ids import UserId
from ioa.protocol.model import Model, Time
from ioa.protocol.team import document_of, team_of
from ioa.protocol.teams.stored_teams import NamedTeam, TeamList, TeamName, TeamReference, TeamRow, VersionNumber, team_name
from ioa_gateway.context import ReadCall, TeamsCall
from ioa_gateway.request_body import JsonRoute

router = APIRouter(route_class=JsonRoute)


class TeamDocument(Model):
    """One version of a team; `team` has the form of a team file."""

    name: TeamName
    version: int
    user: UserId
    at: Time
    team: dict[str, Any]

    @classmethod
    def of(cls, named: NamedTeam) -> Self:
        """Describe a team."""
        return cls(name=named.name, version=named.version, user=named.user, at=named.at, team=document_of(named.team))


@router.get("/teams")
async def list_teams(call: ReadCall) -> TeamList:
    """List teams by name, each with its newest version and its user."""
    return TeamList(teams=tuple(await call.client.teams()))


@router.get("/teams/{name}")
async def show(
    call: ReadCall,
    name: str,
    version: Annotated[VersionNumber | None, Query(description="the version; default: the newest one")] = None,
) -> TeamDocument:
    """Show a team in the form of a team file."""
    return TeamDocument.of(await call.client.team(str(TeamReference(team_name(name), version))))


@router.put("/teams/{name}")
async def put(call: TeamsCall, name: str, document: Annotated[dict[str, Any], Body()]) -> TeamRow:
    """Put a team, in the form of a team file, under its name as the next version. The newest version is not stored again."""
    team = team_of(document)
    if team.team != name:
        raise InvalidInputError(f"The team is called {team.team!r}, and the path names {name!r}: give it one name.")
    stored = await call.client.put_team(team)
    return TeamRow(name=stored.name, version=stored.version, user=stored.user)
